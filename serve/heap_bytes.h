#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace olrank {

/// What an allocation of so many bytes takes from the heap: glibc adds a header, rounds up to 16 bytes,
/// takes at least 32, and rounds large allocations up to whole pages.
inline std::size_t heap_bytes(std::size_t bytes) {
  if (bytes == 0) return 0;
  constexpr std::size_t kLarge = std::size_t{128} << 10;
  const std::size_t unit = bytes >= kLarge ? 4096 : 16;
  const std::size_t taken = (bytes + (bytes >= kLarge ? 16 : 8) + unit - 1) / unit * unit;
  return taken < 32 ? 32 : taken;
}

/// Of a string with this capacity, beyond the object itself.
inline std::size_t string_heap_bytes(std::size_t capacity) {
  static const std::size_t inline_capacity = std::string().capacity();
  return capacity > inline_capacity ? heap_bytes(capacity + 1) : 0;
}
inline std::size_t heap_bytes(const std::string& text) {
  return string_heap_bytes(text.capacity());
}
template <class T>
std::size_t heap_bytes(const std::vector<T>& values) {
  return heap_bytes(values.capacity() * sizeof(T));
}

}  // namespace olrank
