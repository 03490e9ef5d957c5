#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "apps/bench/steady_round.h"

namespace olrank {

/// Flags for the sizes of a round in the middle of a trial.
class RoundFlags {
 public:
  void declare(CLI::App& app);
  /// Throws if the device is not available.
  RoundSizes sizes() const;
  /// The flags with their values, for a command line.
  std::string command_line() const;

 private:
  RoundSizes sizes_;
  std::string device_ = "auto";
};

}  // namespace olrank
