#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cuda/runtime/batch.h"
#include "cuda/runtime/stream.h"
#include "tests/cuda/emulation/device_memory.h"
#include "tests/cuda/emulation/device_work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The twin of a range of addresses: access to what is not mapped ends the program. Chunks are small, so
/// that little is mapped beyond what is used.
class AddressRange {
 public:
  static constexpr std::int64_t kChunk = 4096;

  static bool supported() { return emulation::machine.maps_memory; }

  AddressRange() = default;
  ~AddressRange() {
    if (first_ == nullptr) return;
    finish_before_freeing();
    emulation::wait(emulation::latest(stream_));
    emulation::unmap_on_device(first_);
  }
  AddressRange(AddressRange&& other) noexcept { swap(other); }
  AddressRange& operator=(AddressRange&& other) noexcept {
    swap(other);
    return *this;
  }
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

  void grow(Stream stream, std::int64_t bytes) {
    emulation::not_while_recording("Mapping memory");
    stream_ = stream;
    if (bytes <= mapped_) return;
    if (first_ == nullptr) first_ = emulation::reserve_on_device();
    const std::int64_t all = (bytes + kChunk - 1) / kChunk * kChunk;
    emulation::map_on_device(first_ + mapped_, static_cast<std::size_t>(all - mapped_));
    mapped_ = all;
  }

  std::int64_t bytes() const { return mapped_; }
  std::byte* data() { return first_; }
  const std::byte* data() const { return first_; }

 private:
  void swap(AddressRange& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(mapped_, other.mapped_);
    std::swap(stream_, other.stream_);
  }

  std::byte* first_ = nullptr;
  std::int64_t mapped_ = 0;
  Stream stream_ = nullptr;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
