#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "jobs/experiment.h"
#include "jobs/settings/configuration.h"

namespace olrank {

struct ExperimentRequest {
  std::string replay;  // a file of recorded feedback; empty: simulated users
  Shard shard;
  Existing existing = Existing::kRefuse;
  bool ask_validation = false;           // take queries from the validation set instead of the training set
  std::shared_ptr<FoldCache> data = {};  // of an earlier plan for the same data; empty: they are read
  std::int64_t asked_jobs = 0;           // of a configuration that settle_device() has changed; 0: its own
};

/// Builds an executable plan from the configuration. The configuration must outlive the plan. Throws
/// InvalidArgument for settings that contradict each other.
ExperimentPlan make_plan(const Configuration& configuration, const ExperimentRequest& request);

/// Every setting that differs from the default of its protocol and kind: "ranker full: alpha = 0.2 (paper:
/// 0.1)".
std::vector<std::string> deviations(const Configuration& configuration);

/// The configuration as one JSON object, for the first line of a trace.
std::string configuration_json(const Configuration& configuration);

/// Writes the manifest of the plan's folder: versions, command, data, conventions, trials. Reads every
/// fold.
void write_manifest(const Configuration& configuration, const ExperimentPlan& plan,
                    const OutputFolder& folder, const std::string& command);

/// Writes the configuration; `olrank run FILE` repeats the experiment.
void write_configuration(const Configuration& configuration, const std::filesystem::path& file);

}  // namespace olrank
