#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/configuration.h"
#include "sim/experiment.h"

namespace olrank {

/// Throws InvalidArgument, with the sizes and what would fit, if the trials that run in parallel do not fit
/// into memory.
void check_memory(const Configuration& configuration, const ExperimentPlan& plan);

/// An additional count in the output of a dry run.
struct DryRunCount {
  std::string key;   // in JSON
  std::string text;  // after the number
  std::int64_t count = 0;
};

/// Prints the trials, parameters and memory of a run, and a time estimate from a short calibration.
void print_dry_run(const Configuration& configuration, const ExperimentPlan& plan,
                   const OutputFlags& output, const std::vector<DryRunCount>& extra_counts = {});

}  // namespace olrank
