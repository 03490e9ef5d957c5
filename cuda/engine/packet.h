#pragma once

#include <cstdint>
#include <span>

#include "core/ops/device_network.h"
#include "cuda/engine/growing_array.h"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Where a lesson's arrays lie on the device until the next lesson comes.
struct PackedLesson {
  const std::uint32_t* round = nullptr;
  const std::int64_t* observed = nullptr;
  const PreferencePair* pairs = nullptr;
  const std::int64_t* new_docs = nullptr;
  const DeviceLesson::Term* terms = nullptr;
  const PairObservation* observations = nullptr;
  const std::int32_t* examined = nullptr;
  const std::uint8_t* clicks = nullptr;
  const std::int32_t* order = nullptr;
  const std::int32_t* ends = nullptr;  // [2]: of the examined documents and of the observations so far
};

/// Takes a round's lesson to the device in one copy. The lesson before has to have arrived.
class Packet {
 public:
  PackedLesson send(Stream stream, const DeviceLesson& lesson, std::span<const std::int32_t> ends);

 private:
  PinnedBytes here_;
  GrowingArray<std::byte> there_;
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
