#pragma once

#include <memory>

#include "core/device/device_network.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// make_device_intake() makes this in a CUDA build; the tests make the emulated one.
std::shared_ptr<DeviceIntake> make_intake(int device);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
