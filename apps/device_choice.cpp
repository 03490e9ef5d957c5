#include "apps/device_choice.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/runtime/device.h"
#include "models/neural/device_ranker.h"

namespace olrank {
namespace {

GpuDescription gpu_of(const std::string& asked, const Device& device, const GpuSurvey& survey) {
  if (!survey.built_with_cuda) throw NotBuiltWithCuda(fmt::format("--device {}", asked));
  if (survey.gpus.empty()) {
    throw InvalidArgument(
        fmt::format("--device {}: No GPU: {}. Use --device cpu.", asked, survey.absence));
  }
  const auto count = static_cast<int>(survey.gpus.size());
  if (device.index >= count) {
    throw InvalidArgument(fmt::format("--device {}: The driver shows {} GPU{}, counted from cuda:0.", asked,
                                      count, count == 1 ? "" : "s"));
  }
  const GpuDescription& gpu = survey.gpus[static_cast<std::size_t>(device.index)];
  if (10 * gpu.capability_major + gpu.capability_minor < survey.least_capability) {
    throw InvalidArgument(
        fmt::format("--device {}: The kernels of this build need compute capability {}.{}, and {} has {}.{}: "
                    "configure with -DCMAKE_CUDA_ARCHITECTURES={}{}, or use --device cpu.",
                    asked, survey.least_capability / 10, survey.least_capability % 10, gpu.name,
                    gpu.capability_major, gpu.capability_minor, gpu.capability_major, gpu.capability_minor));
  }
  return gpu;
}

}  // namespace

std::string DeviceChoice::name() const {
  return gpu ? Device{DeviceKind::kCuda, gpu->index}.name() : "cpu";
}

bool DeviceChoice::takes(const RankerSettings& ranker) const {
  return gpu && !why_not_on_device(ranker);
}

DeviceChoice choose_device(const Configuration& configuration) {
  const DeviceRequest request = parse_device(configuration.run.device);
  // Asking the driver takes a while.
  if (request.automatic || request.device.kind == DeviceKind::kCpu) return {};
  return choose_device(configuration, visible_gpus());
}

DeviceChoice choose_device(const Configuration& configuration, const GpuSurvey& survey) {
  const std::string& asked = configuration.run.device;
  const DeviceRequest request = parse_device(asked);
  if (request.automatic || request.device.kind == DeviceKind::kCpu) return {};
  const DeviceChoice choice{gpu_of(asked, request.device, survey)};
  for (const RankerSettings& ranker : configuration.rankers) {
    if (choice.takes(ranker)) return choice;
  }
  if (configuration.rankers.empty()) return choice;
  const RankerSettings& first = configuration.rankers.front();
  throw InvalidArgument(fmt::format(
      "--device {}: No ranker here can be computed on a GPU: of '{}', {}. Use --device cpu.", asked,
      first.name, *why_not_on_device(first)));
}

}  // namespace olrank
