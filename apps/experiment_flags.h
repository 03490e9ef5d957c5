#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>

#include "apps/configuration.h"
#include "apps/experiment_setup.h"

namespace olrank {

/// The flags of a command that carries out trials: what to do about results that are there, and which part
/// of the trials is meant.
class ExperimentFlags {
 public:
  void declare(CLI::App& app);

  /// The shard comes from --shard, else from a scheduler's variables.
  ExperimentRequest request() const;
  bool resume() const { return resume_; }

  /// What was said, as the end of a command line: " --shard 0/4 --resume".
  std::string spoken() const;

 private:
  bool resume_ = false;
  bool force_ = false;
  std::string shard_;
};

/// Settings as the end of a command line that says the same: " --set 'protocol.rounds=10'".
std::string spoken(std::span<const SettingOverride> overrides);

}  // namespace olrank
