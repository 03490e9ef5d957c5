#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/configuration.h"
#include "core/ops/visible_gpus.h"

namespace olrank {

/// Where an experiment's rankers are computed.
struct DeviceChoice {
  std::optional<GpuDescription> gpu;  // none: the CPU

  std::string name() const;  // "cpu", "cuda:0"
  /// Whether a ranker of the experiment goes there.
  bool takes(const RankerSettings& ranker) const;
};

/// What the configuration asks for, of what this build and machine have. `auto` is the CPU: no figure says
/// yet from which size on a GPU pays. Throws for a GPU that cannot be had or that no ranker here would use.
DeviceChoice choose_device(const Configuration& configuration);
DeviceChoice choose_device(const Configuration& configuration, const GpuSurvey& survey);

}  // namespace olrank
