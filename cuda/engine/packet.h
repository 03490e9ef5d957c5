#pragma once

#include <cstdint>
#include <span>

#include "core/device/round.h"
#include "cuda/engine/growing_array.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Where an update's arrays are on the device until the next update.
struct PackedUpdate {
  const std::uint32_t* noise_round = nullptr;
  const PreferencePair* pairs = nullptr;
  const std::int64_t* new_docs = nullptr;
  const std::int64_t* doc_numbers = nullptr;
  const DeviceUpdate::Term* terms = nullptr;
  const PairObservation* observations = nullptr;
  const std::int32_t* examined = nullptr;
  const std::uint8_t* clicks = nullptr;
  const std::int32_t* order = nullptr;
  const std::int64_t* sample_docs = nullptr;
  const PairTerm* sample_terms = nullptr;
  const SampledTerm* sample_sources = nullptr;
  const std::int32_t* ends = nullptr;  // [2]: the numbers of examined documents and of observations so far
};

/// Copies a round's update to the device in one transfer. The one before must have completed.
class Packet {
 public:
  PackedUpdate send(Stream stream, const DeviceUpdate& update, std::span<const std::int32_t> ends);

 private:
  PinnedBytes host_;
  GrowingArray<std::byte> device_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
