#pragma once

#include <memory>

#include "core/device/device_network.h"
#include "cuda/runtime/stream.h"

// A CUDA build calls these from make_device_network() and its like; the tests make the emulated ones.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

std::unique_ptr<DeviceNetwork> make_network(const DeviceNetworkSpec& spec);
std::unique_ptr<DeviceLists> make_lists(const DeviceListsSpec& spec);
std::shared_ptr<DeviceIntake> make_intake(int device);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
