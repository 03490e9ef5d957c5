#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/output_form.h"
#include "jobs/experiment.h"
#include "jobs/settings/configuration.h"

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

/// The trials, parameters and memory of a run, and a time estimate from a short calibration.
std::string dry_run_output(const Configuration& configuration, const ExperimentPlan& plan,
                           const OutputForm& form, const std::vector<DryRunCount>& extra_counts = {});

}  // namespace olrank
