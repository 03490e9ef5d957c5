#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "cuda/runtime/batch.h"
#include "cuda/runtime/stream.h"
#include "tests/cuda/emulation/device_memory.h"
#include "tests/cuda/emulation/device_work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The twin of device memory: unwritten memory is NaN, and the host cannot access it.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::int64_t size) : size_(size) {
    if (size_ == 0) return;
    emulation::not_while_recording("An allocation");
    data_ = emulation::allocate_on_device(size_ * sizeof(T));
  }
  explicit DeviceArray(std::span<const T> values) : DeviceArray(std::ssize(values)) {
    if (size_ == 0) return;
    emulation::start(nullptr,
                     [to = data_, values] { std::memcpy(to, values.data(), values.size_bytes()); });
    emulation::wait(emulation::latest(nullptr));
  }
  /// Waits for the device.
  ~DeviceArray() {
    if (data_ == nullptr) return;
    finish_before_freeing();
    emulation::wait_for_everything();
    emulation::free_on_device(data_);
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
  std::vector<T> to_host() const {
    std::vector<T> values(size_);
    if (size_ == 0) return values;
    finish_queued_work();
    emulation::note_pageable_copy(size_ * sizeof(T));
    emulation::start(
        nullptr, [&, from = data_] { emulation::copy_to_host(values.data(), from, size_ * sizeof(T)); });
    emulation::wait(emulation::latest(nullptr));
    return values;
  }

 private:
  std::size_t size_ = 0;
  void* data_ = nullptr;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
