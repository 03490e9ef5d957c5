// A build without CUDA has this instead of a device.
#include "core/device/device_network.h"
#include "core/device/visible_gpus.h"
#include "core/error.h"

namespace olrank {

GpuSurvey visible_gpus() {
  GpuSurvey survey;
  survey.absence = "this olrank was built without CUDA";
  return survey;
}

std::int64_t free_bytes_of(const GpuDescription&) {
  throw NotBuiltWithCuda("A GPU's free memory");
}

std::optional<int> selected_gpu() {
  return std::nullopt;
}

void select_gpu(int) noexcept {}

void sleep_while_waiting(const GpuDescription&) {
  throw NotBuiltWithCuda("Waiting for a GPU");
}

std::unique_ptr<DeviceNetwork> make_device_network(const DeviceNetworkSpec&) {
  throw NotBuiltWithCuda("A network on a device");
}

std::shared_ptr<DeviceBatch> make_device_batch(int, std::int64_t) {
  throw NotBuiltWithCuda("Trials on a device");
}

std::unique_ptr<DeviceLists> make_device_lists(const DeviceListsSpec&) {
  throw NotBuiltWithCuda("Lists on a device");
}

std::shared_ptr<DeviceIntake> make_device_intake(int) {
  throw NotBuiltWithCuda("Documents on a device");
}

std::optional<int> libtorch_number_of(int) {
  throw NotBuiltWithCuda("A LibTorch module on a GPU");
}

}  // namespace olrank
