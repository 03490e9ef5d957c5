#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/io/fingerprint.h"
#include "core/io/mapped_memory.h"
#include "core/io/safetensors.h"

namespace olrank {

/// A file next to a checkpoint with values of one lineage, which later checkpoints append to.
struct BlockFile {
  std::string name;       // without folders
  std::size_t bytes = 0;  // that belong to the checkpoint; it may be longer
  Fingerprint checksum;   // of these bytes
};

/// The names that such files can have.
std::span<const std::string> block_file_names();

/// Named arrays of numbers in the order in which they are put: the contents of a checkpoint. As a file they
/// are a safetensors file with one-dimensional tensors, texts being bytes (I8). A name that is put again,
/// as by each member of an ensemble, becomes `name#2`, `name#3`, … there. Equal state gives equal bytes.
///
/// A writer of blocks leaves values that never change again to block files: it takes only those that are
/// not stored yet, and its own file says where the others are.
class StateWriter {
 public:
  /// Stored bytes by the number of their lineage.
  using Stored = std::map<std::uint64_t, std::size_t>;
  /// New bytes of a lineage, which follow those that are stored.
  struct NewBytes {
    std::uint64_t lineage = 0;
    std::shared_ptr<ByteArrival> arrival;
  };

  StateWriter() = default;
  /// A writer of blocks.
  explicit StateWriter(const Stored& stored) : to_blocks_(true), stored_(stored) {}
  /// A writer that has the fingerprint and the size of what is put, and keeps none of it: a state may be
  /// larger than memory.
  static StateWriter digester() {
    StateWriter made;
    made.digest_.emplace();
    return made;
  }

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

  /// An entry of `settled` values, then those of `open`, then zeros. The settled ones never change while
  /// the lineage is the same, but entries and values may follow: an entry of a lineage that is not its last
  /// keeps its size.
  template <class T>
  void put_growing(std::string_view name, const Lineage& lineage, const GrowingSource& source,
                   std::int64_t settled, std::span<const T> open = {}, std::int64_t zeros = 0) {
    static_assert(std::is_arithmetic_v<T>);
    put_growing_bytes(name, type_letter<T>(), sizeof(T), lineage, source, static_cast<std::size_t>(settled),
                      std::as_bytes(open), static_cast<std::size_t>(zeros));
  }
  /// Puts values that are on the host.
  template <class T>
  void put_growing(std::string_view name, const Lineage& lineage, std::span<const T> values,
                   std::int64_t settled) {
    put_growing<T>(name, lineage, HostSource(std::as_bytes(values)), settled, values.subspan(settled));
  }

  /// A writer of blocks has to append these to the files of their lineages, in this order.
  std::vector<NewBytes>& new_bytes() { return new_bytes_; }
  /// The bytes of each lineage with the new ones.
  const Stored& with_new_bytes() const { return all_bytes_; }

  /// The bytes of the safetensors file.
  std::string bytes() const;
  /// Writes that file atomically. A writer of blocks needs the files of its lineages, which are in the same
  /// folder.
  void write(const std::filesystem::path& path, const std::map<std::uint64_t, BlockFile>& files = {}) const;
  /// Bytes of all values.
  std::int64_t value_bytes() const { return digest_ ? digested_bytes_ : std::ssize(values_); }
  /// Covers names, types, counts and values in the order of put(). It is also the file's checksum.
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
    // In the block file, before these values, and zeros behind them:
    std::uint64_t lineage = 0;
    std::size_t first_block_byte = 0;
    std::size_t block_bytes = 0;
    std::size_t zero_bytes = 0;
  };
  void put_bytes(std::string_view name, char type, std::size_t size, const void* data, std::size_t count);
  void put_growing_bytes(std::string_view name, char type, std::size_t size, const Lineage& lineage,
                         const GrowingSource& source, std::size_t settled, std::span<const std::byte> open,
                         std::size_t zeros);
  std::vector<NamedTensor> tensors() const;
  std::string blocks_json(const std::map<std::uint64_t, BlockFile>& files) const;
  ModelMetadata metadata(const std::string& blocks) const;

  std::vector<Entry> entries_;
  std::string values_;
  std::optional<Fingerprinter> digest_;
  std::int64_t digested_bytes_ = 0;
  bool to_blocks_ = false;
  Stored stored_;
  Stored all_bytes_;
  std::vector<NewBytes> new_bytes_;
};

/// Reads what a StateWriter wrote, in the same order. Anything that does not match (a name, a type, a
/// count, the end) is an IoError that names the file and the entry.
class StateReader {
 public:
  /// `origin` names the file in messages; `restart` completes the sentence "To continue, …" of a file that
  /// cannot be read. Throws IoError for bytes that are not a StateWriter's, have another format version or
  /// are damaged.
  /// The block files of a state are in `folder`.
  StateReader(std::string bytes, std::string origin,
              std::string_view restart = "start again without this file",
              const std::filesystem::path& folder = {});

  /// Whether the bytes begin as those of a StateWriter do.
  static bool is_state(std::string_view bytes);

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
    std::size_t begin = 0;   // in bytes_
    std::size_t size = 0;    // bytes there
    std::size_t count = 0;   // of all values
    std::string_view block;  // before those values
    std::size_t zeros = 0;   // bytes behind them
  };
  void read_blocks(const std::string& text, const std::filesystem::path& folder, std::string_view restart);
  const Entry& entry_here(std::string_view name) const;
  const Entry& next(std::string_view name, char type, std::size_t item_size);
  void require_count(std::string_view name, const Entry& entry, std::size_t count) const;
  void copy(const Entry& entry, void* target) const;

  std::string bytes_;
  std::vector<std::unique_ptr<const std::string>> blocks_;
  std::string origin_;
  std::vector<Entry> entries_;
  std::size_t next_ = 0;
};

/// A reader of the file that StateWriter::write made. Throws IoError as the reader's constructor does.
StateReader read_state_file(const std::filesystem::path& path, std::string_view restart);

/// The names of the block files that such a file needs; no value if it cannot be read.
std::optional<std::vector<std::string>> block_files_of(const std::filesystem::path& path);

/// The fields of a class in the order in which a checkpoint has them. One function of the class names them,
/// and this either writes or reads each: a StateWriter's entries are read with the reader's checks.
class StateFields {
 public:
  explicit StateFields(StateWriter& state) : writer_(&state) {}
  explicit StateFields(StateReader& state) : reader_(&state) {}

  bool reads() const { return reader_ != nullptr; }
  StateWriter& writer() const { return *writer_; }
  StateReader& reader() const { return *reader_; }

  /// Numbers of one type as one entry; a bool takes a byte.
  template <class T, class... More>
  void numbers(std::string_view name, T& first, More&... more) {
    using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    Stored packed[] = {static_cast<Stored>(first), static_cast<Stored>(more)...};
    sized(name, packed);
    if (!reads()) return;
    const Stored* next = packed;
    first = static_cast<T>(*next++);
    ((more = static_cast<T>(*next++)), ...);
  }
  /// A number that a function sets.
  template <class T, class Set>
  void number(std::string_view name, T value, const Set& set) {
    numbers(name, value);
    if (reads()) set(value);
  }
  /// An array whose size is known: another count is refused.
  template <class Values>
  void sized(std::string_view name, Values&& values) {
    using T = std::remove_reference_t<decltype(*std::data(values))>;
    const std::span<T> all(values);
    if (reads()) {
      reader_->get_into(name, all);
    } else {
      writer_->put(name, std::span<const T>(all));
    }
  }
  /// An array of any size.
  template <class T>
  void any(std::string_view name, std::vector<T>& values) {
    if (reads()) {
      values = reader_->get<T>(name);
    } else {
      writer_->put(name, values);
    }
  }
  /// An array whose size is known and whose values never change while the lineage is the same.
  template <class T>
  void growing(std::string_view name, Lineage& lineage, std::vector<T>& values) {
    if (reads()) {
      reader_->get_into(name, std::span<T>(values));
      lineage.renew();
    } else {
      writer_->put_growing(name, lineage, std::span<const T>(values), std::ssize(values));
    }
  }
  void text(std::string_view name, std::string& letters) {
    if (reads()) {
      letters = reader_->get_text(name);
    } else {
      writer_->put_text(name, letters);
    }
  }
  /// Something that saves and loads itself.
  template <class Part>
  void part(Part& whole) {
    if (reads()) {
      whole.load(*reader_);
    } else {
      whole.save(*writer_);
    }
  }

  /// Refuses a file whose values break a rule.
  void require(bool holds, std::string_view sentence) const {
    if (reads() && !holds) reader_->fail(sentence);
  }

 private:
  StateWriter* writer_ = nullptr;
  StateReader* reader_ = nullptr;
};

/// Writes the fields; nothing that is written changes, so `whole` may be constant.
template <class Whole, class... More>
void save_fields(const Whole& whole, StateWriter& state, const More&... more) {
  StateFields fields(state);
  const_cast<Whole&>(whole).fields(fields, more...);
}
template <class Whole, class... More>
void load_fields(Whole& whole, StateReader& state, const More&... more) {
  StateFields fields(state);
  whole.fields(fields, more...);
}

/// A Stateful saves and loads itself by its fields, unless it overrides both functions.
class Stateful {
 public:
  Stateful() = default;
  virtual ~Stateful() = default;
  Stateful(const Stateful&) = default;
  Stateful& operator=(const Stateful&) = default;

  virtual void save(StateWriter& state) const { save_fields(*this, state); }
  virtual void load(StateReader& state) { load_fields(*this, state); }
  virtual void fields(StateFields& /*state*/) {}
};

}  // namespace olrank
