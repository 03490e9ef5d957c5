#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "jobs/experiment_setup.h"

namespace olrank {

/// The flags of a command that runs trials: what to do with existing results, and which shard to run.
class ExperimentFlags {
 public:
  void declare(CLI::App& app);

  /// The shard comes from --shard, otherwise from a scheduler's environment variables.
  ExperimentRequest request() const;
  bool resume() const { return resume_; }

 private:
  bool resume_ = false;
  bool force_ = false;
  std::string shard_;
};

}  // namespace olrank
