#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "core/interface.h"

namespace olrank {

/// Memory mapped from the operating system: zeroed pages that are allocated on first use and returned at
/// once when freed, or a mapped file.
class MappedMemory {
 public:
  MappedMemory() = default;
  MappedMemory(MappedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MappedMemory() { release(); }

  /// Zeroed pages. Throws std::bad_alloc.
  static MappedMemory anonymous(std::size_t bytes);
  /// Zeroed pages of a file of the folder that has no name: the kernel writes them there as memory gets
  /// scarce, and the disk gets its space back when the memory is freed or the process ends, however it
  /// does. The space is taken at once. Throws IoError.
  static MappedMemory of_unnamed_file(const std::filesystem::path& folder, std::size_t bytes);
  /// Maps a regular file read-only; an empty file gives an empty mapping.
  static MappedMemory of_file(const std::filesystem::path& path);
  /// Maps the file of an open descriptor, which may be closed afterwards. `path` is for messages.
  static MappedMemory of_descriptor(int descriptor, const std::filesystem::path& path);

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }

  /// Frees whole pages after the first `bytes`; the data does not move.
  void shrink(std::size_t bytes);
  /// Gives the pages of a read-only file back to the system, which reads them again when they are used.
  void leave_pages() const;
  void release();

 private:
  MappedMemory(std::byte* data, std::size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace olrank

// How a checkpoint gets values that are only appended to, without writing those again that it has.
namespace olrank {

/// Names values to which others are appended. What was there once never changes, or the lineage is renewed.
/// A copy of the values that nothing is appended to may share it.
class Lineage {
 public:
  Lineage() { renew(); }
  void renew();
  /// Unique within the process; never 0.
  std::uint64_t id() const { return id_; }

 private:
  std::uint64_t id_ = 0;
};

/// Bytes on the host, valid until `keep` is dropped, on any thread.
struct ArrivedBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keep;
};

/// Bytes on their way to the host.
class ByteArrival : public Interface {
 public:
  /// Passes on what has arrived, in order, or with `wait` everything. Returns whether nothing is left.
  virtual bool pass_on(const std::function<void(ArrivedBytes)>& sink, bool wait) = 0;
};

/// Where values are.
class GrowingSource : public Interface {
 public:
  /// Passes the bytes from `first` on to `sink`, in order, in pieces that are valid during a call.
  virtual void pass(std::size_t first, std::size_t bytes,
                    const std::function<void(std::span<const std::byte>)>& sink) const = 0;
  /// Starts bringing them to the host. Values may be appended meanwhile.
  virtual std::shared_ptr<ByteArrival> start(std::size_t first, std::size_t bytes) const = 0;
};

/// Values on the host, which are copied at once.
class HostSource : public GrowingSource {
 public:
  explicit HostSource(std::span<const std::byte> values) : values_(values) {}

  void pass(std::size_t first, std::size_t bytes,
            const std::function<void(std::span<const std::byte>)>& sink) const override {
    sink(values_.subspan(first, bytes));
  }
  std::shared_ptr<ByteArrival> start(std::size_t first, std::size_t bytes) const override;

 private:
  std::span<const std::byte> values_;
};

}  // namespace olrank
