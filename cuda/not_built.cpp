// The device entries of a build without CUDA.
#include "core/error.h"
#include "core/ops/device_network.h"
#include "core/ops/visible_gpus.h"

namespace olrank {

GpuSurvey visible_gpus() {
  GpuSurvey survey;
  survey.absence = "this olrank was built without CUDA";
  return survey;
}

std::unique_ptr<DeviceNetwork> make_device_network(const DeviceNetworkSpec&) {
  throw NotBuiltWithCuda("A network on a device");
}

}  // namespace olrank
