#include "apps/device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/runtime/device.h"
#include "models/neural/device_ranker.h"
#include "models/ranker_factory.h"

namespace olrank {
namespace {

GpuDescription gpu_of(const std::string& asked, const Device& device, const GpuSurvey& survey) {
  if (!survey.built_with_cuda) throw NotBuiltWithCuda(fmt::format("--device {}", asked));
  if (survey.gpus.empty()) {
    throw InvalidArgument(
        fmt::format("--device {}: There is no GPU: {}. Use --device cpu.", asked, survey.absence));
  }
  for (const DeviceLibrary& library : survey.libraries) {
    if (library.version == library.built_with) continue;
    throw InvalidArgument(
        fmt::format("--device {}: The loaded {} is version {}, but this program was built with {}: use the "
                    "CUDA libraries that belong to its LibTorch, or build it again.",
                    asked, library.name, library.version, library.built_with));
  }
  const auto count = static_cast<int>(survey.gpus.size());
  if (device.index >= count) {
    throw InvalidArgument(fmt::format("--device {}: The driver reports {} GPU{}, numbered from cuda:0.",
                                      asked, count, count == 1 ? "" : "s"));
  }
  const GpuDescription& gpu = survey.gpus[device.index];
  if (10 * gpu.capability_major + gpu.capability_minor < survey.least_capability) {
    throw InvalidArgument(fmt::format(
        "--device {}: The kernels of this build need compute capability {}.{}, but {} has {}.{}: configure "
        "with "
        "-DCMAKE_CUDA_ARCHITECTURES={}{}, or use --device cpu.",
        asked, survey.least_capability / 10, survey.least_capability % 10, gpu.name, gpu.capability_major,
        gpu.capability_minor, gpu.capability_major, gpu.capability_minor));
  }
  return gpu;
}

/// Refuses a GPU that no ranker can use, and rankers that need a GPU on the CPU.
DeviceChoice checked(DeviceChoice choice, const Configuration& configuration) {
  const std::vector<RankerSettings>& rankers = configuration.rankers;
  const auto taken = [&](const RankerSettings& ranker) { return choice.takes(ranker); };
  if (choice.gpu && !rankers.empty() && std::none_of(rankers.begin(), rankers.end(), taken)) {
    const RankerSettings& first = rankers.front();
    throw InvalidArgument(
        fmt::format("--device {}: No ranker of this configuration can run on a GPU: '{}' cannot, as {}. "
                    "Use --device cpu.",
                    configuration.run.device, first.name, *why_not_on_device(first)));
  }
  for (const RankerSettings& ranker : rankers) {
    if (!choice.takes(ranker)) check_on_cpu(ranker);
  }
  return choice;
}

}  // namespace

std::string DeviceChoice::name() const {
  return gpu ? Device{DeviceKind::kCuda, gpu->index}.name() : "cpu";
}

bool DeviceChoice::takes(const RankerSettings& ranker) const {
  return gpu && !why_not_on_device(ranker);
}

std::optional<GpuDescription> gpu_for(const std::string& asked) {
  const DeviceRequest request = parse_device(asked);
  // Querying the driver is slow.
  if (request.automatic || request.device.kind == DeviceKind::kCpu) return std::nullopt;
  GpuDescription gpu = gpu_of(asked, request.device, visible_gpus());
  gpu.free_bytes = free_bytes_of(gpu);
  return gpu;
}

std::optional<GpuDescription> gpu_for(const std::string& asked, const GpuSurvey& survey) {
  const DeviceRequest request = parse_device(asked);
  if (request.automatic || request.device.kind == DeviceKind::kCpu) return std::nullopt;
  return gpu_of(asked, request.device, survey);
}

DeviceChoice choose_device(const Configuration& configuration) {
  return checked({gpu_for(configuration.run.device)}, configuration);
}

DeviceChoice choose_device(const Configuration& configuration, const GpuSurvey& survey) {
  return checked({gpu_for(configuration.run.device, survey)}, configuration);
}

}  // namespace olrank
