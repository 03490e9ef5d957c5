#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/configuration.h"
#include "core/device/visible_gpus.h"

namespace olrank {

/// The line after the settings of a ranker that was computed on a GPU, in recipes and model files; a
/// comment for programs that parse settings.
inline constexpr std::string_view kComputedOnGpu = "# computed on a GPU\n";

/// The device of an experiment's rankers.
struct DeviceChoice {
  std::optional<GpuDescription> gpu;  // empty: the CPU

  std::string name() const;  // "cpu", "cuda:0"
  /// Whether a ranker of the experiment runs on the GPU.
  bool takes(const RankerSettings& ranker) const;
};

/// The GPU that --device names, empty for `auto` and `cpu`. Throws if it is not available.
std::optional<GpuDescription> gpu_for(const std::string& asked);
std::optional<GpuDescription> gpu_for(const std::string& asked, const GpuSurvey& survey);

/// The device that the configuration asks for. `auto` means the CPU, as no measurement says yet from which
/// size a GPU pays. Throws for a GPU that is not available, or that no ranker of the configuration can use.
DeviceChoice choose_device(const Configuration& configuration);
DeviceChoice choose_device(const Configuration& configuration, const GpuSurvey& survey);

}  // namespace olrank
