#include "core/device/device_network.h"

#include "cuda/engine/resident_network.h"

namespace olrank {

std::unique_ptr<DeviceNetwork> make_device_network(const DeviceNetworkSpec& spec) {
  return cuda::make_network(spec);
}

}  // namespace olrank
