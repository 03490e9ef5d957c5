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
#include "core/io/safetensors.h"

namespace olrank {

/// Named arrays of numbers in the order in which they are put: the contents of a checkpoint. As a file they
/// are a safetensors file with one-dimensional tensors, texts being bytes (I8). A name that is put again,
/// as by each member of an ensemble, becomes `name#2`, `name#3`, … there. Equal state gives equal bytes.
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

  /// The bytes of the safetensors file.
  std::string bytes() const;
  /// Writes that file atomically.
  void write(const std::filesystem::path& path) const;
  /// Bytes of all values.
  std::int64_t value_bytes() const { return std::ssize(values_); }
  /// Of names, types, counts and values, in the order in which they were put. Also the file's checksum.
  Fingerprint fingerprint() const;

  /// Floating-point, signed, unsigned: 'f', 'i', 'u'.
  template <class T>
  static constexpr char type_letter() {
    if (std::is_floating_point_v<T>) return 'f';
    return std::is_signed_v<T> ? 'i' : 'u';
  }

 private:
  struct Entry {
    std::string name;
    char type = 0;
    std::uint8_t item_size = 0;
    std::size_t begin = 0;  // in values_
    std::size_t count = 0;
  };
  void put_bytes(std::string_view name, char type, std::size_t size, const void* data, std::size_t count);
  std::vector<NamedTensor> tensors() const;
  ModelMetadata metadata() const;

  std::vector<Entry> entries_;
  std::string values_;
};

/// Reads what a StateWriter wrote, in the same order. Anything that does not match (a name, a type, a
/// count, the end) is an IoError that names the file and the entry.
class StateReader {
 public:
  /// `origin` names the file in messages; `restart` completes the sentence "To continue, …" of a file that
  /// cannot be read. Throws IoError for bytes that are not a StateWriter's, have another format version or
  /// are damaged.
  StateReader(std::string bytes, std::string origin,
              std::string_view restart = "start again without this file");

  template <class T>
  std::vector<T> get(std::string_view name) {
    const Entry& entry = next(name, StateWriter::type_letter<T>(), sizeof(T));
    std::vector<T> values(entry.count);
    copy(entry, values.data());
    return values;
  }
  /// Into an array whose size is known: another count is refused.
  template <class T>
  void get_into(std::string_view name, std::span<T> values) {
    const Entry& entry = next(name, StateWriter::type_letter<T>(), sizeof(T));
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
  bool is_next(std::string_view name) const {
    return next_ < entries_.size() && entries_[next_].name == name;
  }
  /// Skips the entries before the next one of this name.
  void skip_to(std::string_view name);

  void require_end() const;
  [[noreturn]] void fail(std::string_view sentence) const;

 private:
  struct Entry {
    std::string name;
    std::string dtype;
    std::size_t begin = 0;  // in bytes_
    std::size_t size = 0;   // bytes
    std::size_t count = 0;
  };
  const Entry& entry_here(std::string_view name) const;
  const Entry& next(std::string_view name, char type, std::size_t item_size);
  void require_count(std::string_view name, const Entry& entry, std::size_t count) const;
  void copy(const Entry& entry, void* target) const;

  std::string bytes_;
  std::string origin_;
  std::vector<Entry> entries_;
  std::size_t next_ = 0;
};

/// A reader of the file that StateWriter::write made. Throws IoError as the reader's constructor does.
StateReader read_state_file(const std::filesystem::path& path, std::string_view restart);

}  // namespace olrank
