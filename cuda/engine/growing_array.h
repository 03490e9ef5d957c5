#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cuda/runtime/device_array.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

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
    const auto kept_bytes = static_cast<std::size_t>(kept) * sizeof(T);
    copy_bytes(stream, larger.data(), array_.data(), kept_bytes);
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
  /// With those of the memory that it has left.
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

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
