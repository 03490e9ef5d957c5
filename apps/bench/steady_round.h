#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/bench/measurement.h"

namespace olrank {

/// A round in the middle of a trial.
struct RoundSizes {
  std::string structure = "full";         // a covariance, or ensemble-N
  std::int64_t pairs = 1000;              // n, observed before
  std::int64_t docs = 120;                // V
  std::int64_t width = 100;               // m
  std::int64_t depth = 2;                 // layers of weights
  std::int64_t features = 136;            // d
  int threads = 1;                        // of each trial
  std::int64_t trials = 1;                // at once
  std::int64_t rounds = 11;               // measured
  std::optional<int> gpu = std::nullopt;  // where the trials are computed; none: the CPU
};

/// Throws InvalidArgument, with what would fit, where the trials' rankers and documents cannot fit into
/// this machine's memory. Nothing is allocated.
void check_memory(const RoundSizes& sizes);

/// Seconds of a round by stage, "round/full/width" and so on, and "round/full/total", of all trials; and
/// "round/full/elapsed", in which every trial plays one round. The wall's, as curves have them. Each round
/// brings some pairs more. On a GPU stages are its own seconds, the total is the round's from list to list,
/// and "round/full/idle" is what of it the stages leave.
std::vector<Measurement> measure_round(const RoundSizes& sizes);

}  // namespace olrank
