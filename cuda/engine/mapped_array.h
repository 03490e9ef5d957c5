#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/engine/growing_array.h"
#include "cuda/runtime/address_range.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Device memory that grows in place: the numbers in it never move, and it takes what is used plus at most
/// one chunk. On devices that cannot map memory it is a GrowingArray.
template <class T>
class MappedArray {
 public:
  /// Makes room for `size` numbers; the first `kept` keep their values, and new bytes are 0.
  void reserve(Stream stream, std::int64_t size, std::int64_t kept = 0) {
    if (!in_place_) {
      moving_.reserve(stream, size, kept);
      return;
    }
    const std::int64_t before = range_.bytes();
    range_.grow(stream, size * static_cast<std::int64_t>(sizeof(T)));
    fill_bytes(stream, range_.data() + before, 0, static_cast<std::size_t>(range_.bytes() - before));
  }

  /// Whether reserve() moves the numbers.
  bool moves_to_hold(std::int64_t size) const { return !in_place_ && size > moving_.capacity(); }
  bool grows_in_place() const { return in_place_; }
  std::int64_t bytes() const { return in_place_ ? range_.bytes() : moving_.bytes(); }
  T* data() { return in_place_ ? reinterpret_cast<T*>(range_.data()) : moving_.data(); }
  const T* data() const { return in_place_ ? reinterpret_cast<const T*>(range_.data()) : moving_.data(); }

 private:
  bool in_place_ = AddressRange::supported();
  AddressRange range_;
  GrowingArray<T> moving_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
