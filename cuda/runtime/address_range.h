#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/device_network.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A range of device addresses that memory is mapped into from its beginning, as it is needed. What is
/// mapped keeps its address, so that growing copies nothing and takes no more than one chunk in advance.
class AddressRange {
 public:
  /// So many bytes are mapped at once, unless the device maps larger pages.
  static constexpr std::int64_t kChunk = kMemoryChunk;

  /// Whether the calling thread's device can map memory. Without that, ranges cannot grow.
  static bool supported();

  AddressRange() = default;  // no addresses until it grows
  /// Waits for the stream of the latest grow().
  ~AddressRange();
  AddressRange(AddressRange&& other) noexcept { swap(other); }
  AddressRange& operator=(AddressRange&& other) noexcept {
    swap(other);
    return *this;
  }
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;

  /// Maps whole chunks until there are this many bytes. New bytes are uninitialised. `stream` uses them and
  /// has to live as long as the range.
  void grow(Stream stream, std::int64_t bytes);

  std::int64_t bytes() const { return mapped_; }
  std::byte* data() { return first_; }
  const std::byte* data() const { return first_; }

 private:
  void swap(AddressRange& other) noexcept;
  void reserve();
  void map_chunk();

  std::byte* first_ = nullptr;
  std::int64_t reserved_ = 0;
  std::int64_t mapped_ = 0;
  std::int64_t chunk_ = 0;
  int device_ = 0;
  Stream stream_ = nullptr;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
