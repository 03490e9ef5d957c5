#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/steady_round.h"
#include "models/skeleton/trainer_settings.h"

namespace olrank {

/// Flags for the sizes of a round in the middle of a trial.
class RoundFlags {
 public:
  void declare(CLI::App& app);
  /// Throws if the device is not available, or if a flag has several values.
  RoundSizes sizes() const;
  /// One for each value of --pairs.
  std::vector<RoundSizes> all_sizes() const;
  /// The flags with their values, for a command line.
  std::string command_line() const;

 private:
  RoundSizes common_sizes() const;

  RoundSizes sizes_;
  std::vector<std::int64_t> pairs_ = {RoundSizes{}.pairs};
  std::string device_ = "auto";
  std::string retrain_ = std::string(name_of(Retrain::kEveryRound));
};

}  // namespace olrank
