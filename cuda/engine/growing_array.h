#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/io/state_archive.h"
#include "cuda/runtime/address_range.h"
#include "cuda/runtime/device_array.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// copy_bytes() of so many numbers.
template <class T>
void copy_numbers(Stream stream, T* to, const T* from, std::int64_t count) {
  copy_bytes(stream, to, from, static_cast<std::size_t>(count) * sizeof(T));
}
template <class T>
void clear_numbers(Stream stream, T* to, std::int64_t count) {
  fill_bytes(stream, to, 0, static_cast<std::size_t>(count) * sizeof(T));
}

/// Waits before memory is freed that transfers in these streams may still use.
inline void wait_before_freeing(int device, std::initializer_list<const OwnedStream*> streams) {
  try {
    use_device(device);
    for (const OwnedStream* stream : streams) stream->wait();
  } catch (const Error&) {  // the device is gone
  }
}

/// Reads values of an array's size.
template <class T>
void load_array(StateReader& state, std::string_view name, DeviceArray<T>& array) {
  std::vector<T> values(array.size());
  state.get_into(name, std::span(values));
  copy_to_device(std::span<const T>(values), array.data());
}

/// The bytes of arrays of any kind.
template <class... Arrays>
std::int64_t bytes_of(const Arrays&... arrays) {
  return (arrays.bytes() + ...);
}

/// Device memory that at least doubles when it grows, so that graphs that point into it are rarely recorded
/// again. What it has moved from, no more than it has, is freed with the array: freeing waits for the whole
/// device, also for what other trials do there.
template <class T>
class GrowingArray {
 public:
  /// Makes room for `size` numbers. If the array moves, the first `kept` numbers are copied and all other
  /// bytes set to `filling`. Returns whether it has moved.
  bool reserve(Stream stream, std::int64_t size, std::int64_t kept = 0, int filling = 0) {
    if (size <= array_.size()) return false;
    DeviceArray<T> larger(std::max(size, 2 * array_.size()));
    copy_numbers(stream, larger.data(), array_.data(), kept);
    fill_bytes(stream, larger.data() + kept, filling,
               static_cast<std::size_t>(larger.size() - kept) * sizeof(T));
    std::swap(array_, larger);
    if (larger.size() > 0) left_.push_back(std::move(larger));
    return true;
  }

  /// Replaces the contents by values of the host. Waits for the stream, which may still read the old ones.
  void assign(Stream stream, std::span<const T> values) {
    reserve(stream, std::ssize(values));
    OwnedStream::wait_for(stream);
    copy_to_device(values, array_.data());
  }
  /// The first `size` numbers, once the stream has finished.
  std::vector<T> to_host(Stream stream, std::int64_t size) const {
    std::vector<T> values(size);
    OwnedStream::wait_for(stream);
    copy_to_host(array_.data(), std::span(values));
    return values;
  }

  /// Sets every byte that there is room for.
  void fill(Stream stream, int byte) {
    fill_bytes(stream, array_.data(), byte, static_cast<std::size_t>(array_.size()) * sizeof(T));
  }

  std::int64_t capacity() const { return array_.size(); }
  /// Counts also those of the memory that it has left.
  std::int64_t bytes() const {
    std::int64_t numbers = array_.size();
    for (const DeviceArray<T>& one : left_) numbers += one.size();
    return numbers * static_cast<std::int64_t>(sizeof(T));
  }
  T* data() { return array_.data(); }
  const T* data() const { return array_.data(); }

 private:
  DeviceArray<T> array_;
  std::vector<DeviceArray<T>> left_;
};

/// For an array that is copied to the host whole, or before anything is computed: sanitizers report copies
/// of memory that nothing has written.
template <class T>
DeviceArray<T> filled_array(std::int64_t size, T value) {
  const std::vector<T> values(static_cast<std::size_t>(size), value);
  return DeviceArray<T>(std::span<const T>(values));
}

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
  std::int64_t bytes() const { return in_place_ ? range_.bytes() : moving_.bytes(); }
  T* data() { return in_place_ ? reinterpret_cast<T*>(range_.data()) : moving_.data(); }
  const T* data() const { return in_place_ ? reinterpret_cast<const T*>(range_.data()) : moving_.data(); }

 private:
  bool in_place_ = AddressRange::supported();
  AddressRange range_;
  GrowingArray<T> moving_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
