#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// An array in device memory.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  /// Uninitialised.
  explicit DeviceArray(std::int64_t size) : size_(size) {
    if (size_ > 0) data_ = allocate_bytes(size_ * sizeof(T));
  }
  explicit DeviceArray(std::span<const T> values) : DeviceArray(std::ssize(values)) {
    if (size_ > 0) upload_bytes(data_, values.data(), values.size_bytes());
  }
  ~DeviceArray() {
    if (data_ == nullptr) return;
    finish_before_freeing();
    free_bytes(data_);
  }
  DeviceArray(DeviceArray&& other) noexcept
      : size_(std::exchange(other.size_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
    return *this;
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  std::int64_t size() const { return static_cast<std::int64_t>(size_); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(size_ * sizeof(T)); }
  T* data() { return static_cast<T*>(data_); }
  const T* data() const { return static_cast<const T*>(data_); }

  /// Waits for the calling thread's default stream; for other streams the caller has waited.
  std::vector<T> to_host() const {
    std::vector<T> values(size_);
    copy_to_host(data(), std::span(values));
    return values;
  }

 private:
  std::size_t size_ = 0;
  void* data_ = nullptr;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
