#pragma once

#include <cstdint>

#include "core/device/device_network.h"
#include "core/ops/pair_training.h"
#include "cuda/runtime/stream.h"

// Adds a round to the history, from one packet sent by the host. All arrays are on the device.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// to [count × features] = rows numbers [count] of `from`.
void gather_docs(Stream stream, const float* from, std::int64_t features, const std::int64_t* numbers,
                 std::int64_t count, float* to);

/// terms[changed[i].index] = changed[i].term.
void write_terms(Stream stream, const DeviceUpdate::Term* changed, std::int64_t count, PairTerm* terms);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
