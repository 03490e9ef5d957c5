#pragma once

#include "core/device/network_spec.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Whether one kernel takes the steps of full-batch training, on the calling thread's device: a function of
/// the spec and the card. Throws InvalidArgument if the spec demands one kernel where that is impossible.
bool trains_in_one_kernel(const DeviceNetworkSpec& spec);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
