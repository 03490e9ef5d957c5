#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuda/runtime/device_array.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// For an array that is copied to the host whole, or before anything is computed: sanitizers report copies
/// of memory that nothing has written.
template <class T>
DeviceArray<T> filled_array(std::int64_t size, T value) {
  const std::vector<T> values(static_cast<std::size_t>(size), value);
  return DeviceArray<T>(std::span<const T>(values));
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
