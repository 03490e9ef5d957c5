#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The twin of device memory: the host's, filled with NaN, so that what is never written shows.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::int64_t size) : values_(static_cast<std::size_t>(size)) {
    if (size > 0) std::memset(static_cast<void*>(values_.data()), 0xFF, values_.size() * sizeof(T));
  }
  explicit DeviceArray(std::span<const T> values) : values_(values.begin(), values.end()) {}

  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }
  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }
  std::vector<T> to_host() const { return values_; }

 private:
  std::vector<T> values_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
