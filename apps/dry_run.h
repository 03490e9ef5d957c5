#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/configuration.h"
#include "sim/experiment.h"

namespace olrank {

/// Throws InvalidArgument, with the sizes and what would fit, when the trials that run at once cannot fit
/// into the memory there is.
void check_memory(const Configuration& configuration, const ExperimentPlan& plan);

/// A count that a dry run prints besides its own.
struct DryRunCount {
  std::string key;   // in JSON
  std::string text;  // after the number
  std::int64_t count = 0;
};

/// Prints what a run would do: trials, parameters, bytes, and after a short calibration an estimate of
/// time.
void print_dry_run(const Configuration& configuration, const ExperimentPlan& plan,
                   const OutputFlags& output, const std::vector<DryRunCount>& besides = {});

}  // namespace olrank
