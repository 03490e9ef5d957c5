#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "apps/bench/steady_round.h"

namespace olrank {

/// The sizes of a steady round as flags.
class RoundFlags {
 public:
  void declare(CLI::App& app);
  const RoundSizes& sizes() const { return sizes_; }
  /// As the end of a command line.
  std::string spoken() const;

 private:
  RoundSizes sizes_;
};

}  // namespace olrank
