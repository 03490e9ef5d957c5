#pragma once

#include <CLI/CLI.hpp>
#include <string>

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

 private:
  bool resume_ = false;
  bool force_ = false;
  std::string shard_;
};

}  // namespace olrank
