#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/configuration.h"
#include "sim/experiment.h"

namespace olrank {

/// What a command adds to the configuration.
struct ExperimentRequest {
  std::string replay;  // a file of recorded feedback; empty: simulated users
  Shard shard;
  Existing existing = Existing::kRefuse;
  bool ask_validation = false;  // the queries of the validation part instead of the training part's
};

/// Joins configuration, data, rankers and users into a plan that the experiment can carry out. The
/// configuration has to outlive the plan. Throws InvalidArgument for what cannot go together.
ExperimentPlan make_plan(const Configuration& configuration, const ExperimentRequest& request);

/// Every setting that departs from what its protocol and kind say: "ranker full: alpha = 0.2 (paper: 0.1)".
std::vector<std::string> deviations(const Configuration& configuration);

/// The configuration as one JSON object, as traces begin with it.
std::string configuration_json(const Configuration& configuration);

/// Makes the plan's folder and writes OUT/manifest.json: versions, command, data, conventions. Reads every
/// fold.
void write_manifest(const Configuration& configuration, const ExperimentPlan& plan,
                    const std::string& command);

/// Writes the configuration so that `olrank run FILE` repeats the experiment.
void write_configuration(const Configuration& configuration, const std::filesystem::path& file);

}  // namespace olrank
