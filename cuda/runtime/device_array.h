#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cuda/runtime/batch.h"
#include "cuda/runtime/check.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// An array in device memory.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  /// Uninitialised.
  explicit DeviceArray(std::int64_t size) : size_(size) {
    if (size_ > 0) OLRANK_CUDA_CHECK(cudaMalloc(&data_, size_ * sizeof(T)));
  }
  explicit DeviceArray(std::span<const T> values) : DeviceArray(std::ssize(values)) {
    if (size_ == 0) return;
    OLRANK_CUDA_CHECK(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
    // The transfer may still be running, and non-blocking streams do not wait for it.
    OLRANK_CUDA_CHECK(cudaStreamSynchronize(nullptr));
  }
  ~DeviceArray() {
    if (data_ == nullptr) return;
    finish_before_freeing();
    cudaFree(data_);
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
    finish_queued_work();
    if (size_ > 0)
      OLRANK_CUDA_CHECK(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  std::size_t size_ = 0;
  void* data_ = nullptr;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
