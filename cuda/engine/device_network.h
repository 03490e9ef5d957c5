#pragma once

#include <chrono>
#include <memory>

#include "core/device/device_network.h"
#include "cuda/runtime/stream.h"

// A CUDA build calls these from make_device_network() and its like; the tests make the emulated ones.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

std::unique_ptr<DeviceNetwork> make_network(const DeviceNetworkSpec& spec);
/// `seats` trials begin together if they come at about the same time. Those who wait go without a trial
/// that came to the latest meeting for no longer than `patience`. Results depend on neither.
std::shared_ptr<DeviceBatch> make_batch(int device, std::int64_t seats,
                                        std::chrono::milliseconds patience = std::chrono::milliseconds{2});
std::unique_ptr<DeviceLists> make_lists(const DeviceListsSpec& spec);
std::shared_ptr<DeviceIntake> make_intake(int device);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
