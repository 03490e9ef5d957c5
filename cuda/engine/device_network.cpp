#include "cuda/engine/device_network.h"

namespace olrank {

std::unique_ptr<DeviceNetwork> make_device_network(const DeviceNetworkSpec& spec) {
  return cuda::make_network(spec);
}

std::shared_ptr<DeviceBatch> make_device_batch(int device, std::int64_t seats) {
  return cuda::make_batch(device, seats);
}

std::unique_ptr<DeviceLists> make_device_lists(const DeviceListsSpec& spec) {
  return cuda::make_lists(spec);
}

std::shared_ptr<DeviceIntake> make_device_intake(int device) {
  return cuda::make_intake(device);
}

}  // namespace olrank
