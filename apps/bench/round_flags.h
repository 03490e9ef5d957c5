#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "apps/bench/steady_round.h"

namespace olrank {

/// The sizes of a steady round as flags.
class RoundFlags {
 public:
  void declare(CLI::App& app);
  /// Throws for a device that cannot be had.
  RoundSizes sizes() const;
  /// As the end of a command line.
  std::string spoken() const;

 private:
  RoundSizes sizes_;
  std::string device_ = "auto";
};

}  // namespace olrank
