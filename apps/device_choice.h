#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/configuration.h"
#include "core/device/visible_gpus.h"

namespace olrank {

/// The line that stands behind the settings of a ranker which was computed on a GPU, in recipes and in
/// model files. To whoever reads settings it is a comment.
inline constexpr std::string_view kComputedOnGpu = "# computed on a GPU\n";

/// Where an experiment's rankers are computed.
struct DeviceChoice {
  std::optional<GpuDescription> gpu;  // none: the CPU

  std::string name() const;  // "cpu", "cuda:0"
  /// Whether a ranker of the experiment goes there.
  bool takes(const RankerSettings& ranker) const;
};

/// The GPU that a --device names; none for `auto` and `cpu`. Throws for one that cannot be had.
std::optional<GpuDescription> gpu_for(const std::string& asked);
std::optional<GpuDescription> gpu_for(const std::string& asked, const GpuSurvey& survey);

/// What the configuration asks for, of what this build and machine have. `auto` is the CPU: no figure says
/// yet from which size on a GPU pays. Throws for a GPU that cannot be had or that no ranker here would use.
DeviceChoice choose_device(const Configuration& configuration);
DeviceChoice choose_device(const Configuration& configuration, const GpuSurvey& survey);

}  // namespace olrank
