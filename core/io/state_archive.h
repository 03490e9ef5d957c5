#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/io/fingerprint.h"

namespace olrank {

/// Named arrays of numbers in the order in which they are put: what a checkpoint is made of. Equal state
/// gives equal bytes.
class StateWriter {
 public:
  template <class T>
  void put(std::string_view name, std::span<const T> values) {
    static_assert(std::is_arithmetic_v<T>);
    put_bytes(name, type_letter<T>(), sizeof(T), values.data(), values.size());
  }
  template <class T>
  void put(std::string_view name, const std::vector<T>& values) {
    put(name, std::span<const T>(values));
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(std::string_view name, T value) { put(name, std::span<const T>(&value, 1)); }
  void put_text(std::string_view name, std::string_view text) {
    put(name, std::span<const char>(text.data(), text.size()));
  }

  const std::string& bytes() const { return bytes_; }
  Fingerprint fingerprint() const { return fingerprint_of(bytes_); }

  /// Floating-point, signed, unsigned: 'f', 'i', 'u'.
  template <class T>
  static constexpr char type_letter() {
    if (std::is_floating_point_v<T>) return 'f';
    return std::is_signed_v<T> ? 'i' : 'u';
  }

 private:
  void put_bytes(std::string_view name, char type, std::size_t size, const void* data, std::size_t count);

  std::string bytes_;
};

/// Reads what a StateWriter wrote, in the same order. Whatever does not fit (a name, a type, a count, the
/// end) is an IoError that names the file and the entry.
class StateReader {
 public:
  /// `origin` names the file in messages; `bytes` must outlive the reader.
  StateReader(std::string_view bytes, std::string origin);

  template <class T>
  std::vector<T> get(std::string_view name) {
    const Entry entry = next(name, StateWriter::type_letter<T>(), sizeof(T));
    std::vector<T> values(entry.count);
    copy(entry, values.data());
    return values;
  }
  /// Into an array whose size is known: another count is refused.
  template <class T>
  void get_into(std::string_view name, std::span<T> values) {
    const Entry entry = next(name, StateWriter::type_letter<T>(), sizeof(T));
    require_count(name, entry, values.size());
    copy(entry, values.data());
  }
  template <class T>
  T get_one(std::string_view name) {
    T value{};
    get_into(name, std::span<T>(&value, 1));
    return value;
  }
  std::string get_text(std::string_view name);
  /// Passes over what stands before the next entry of this name.
  void skip_to(std::string_view name);

  void require_end() const;
  [[noreturn]] void fail(std::string_view sentence) const;

 private:
  struct Entry {
    std::string_view name;
    char type = 0;
    std::size_t item_size = 0;
    const char* data = nullptr;
    std::size_t count = 0;
    std::size_t bytes = 0;
  };
  /// The entry at the position; `name` is what should stand there, for messages.
  Entry entry_here(std::string_view name) const;
  void pass(const Entry& entry);
  Entry next(std::string_view name, char type, std::size_t size);
  void require_count(std::string_view name, const Entry& entry, std::size_t count) const;
  static void copy(const Entry& entry, void* target);

  std::string_view bytes_;
  std::string origin_;
  std::size_t position_ = 0;
};

/// The archive as a file that appears whole or not at all: magic, format version, checksum, entries.
void write_state_file(const std::filesystem::path& path, const StateWriter& state);
/// The entries of such a file, checked. Throws IoError for a file that is none, was written by another
/// format version, or is damaged.
std::string read_state_file(const std::filesystem::path& path);

}  // namespace olrank
