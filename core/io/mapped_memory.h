#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

namespace olrank {

/// Pages straight from the operating system: zeroed memory that costs nothing until it is touched and goes
/// back the moment it is let go, or a file seen as memory.
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

  /// Zeros, aligned to a page. Throws std::bad_alloc when the system refuses.
  static MappedMemory anonymous(std::size_t bytes);
  /// A regular file, read-only; an empty one gives an empty mapping.
  static MappedMemory of_file(const std::filesystem::path& path);
  /// The same for an open descriptor, which may be closed afterwards. `path` is for messages.
  static MappedMemory of_descriptor(int descriptor, const std::filesystem::path& path);

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }

  /// Gives back whole pages behind the first `bytes`; the start stays where it is.
  void shrink(std::size_t bytes);
  void release();

 private:
  MappedMemory(std::byte* data, std::size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace olrank
