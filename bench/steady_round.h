#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/measurement.h"
#include "bench/measurement_file.h"
#include "core/online/retraining.h"

namespace olrank {

/// The sizes of a round in the middle of a trial.
struct RoundSizes {
  std::string structure = "full";  // a covariance, inducing-N or ensemble-N
  std::string module;              // a LibTorch module as the network; empty: mlp
  std::int64_t pairs = 1000;       // n, observed before the first round
  std::int64_t docs = 120;         // V
  std::int64_t width = 100;        // m
  std::int64_t depth = 2;          // layers of weights
  std::int64_t features = 136;     // d
  int threads = 1;
  std::int64_t rounds = 0;                // to measure; 0: enough for a typical one
  RetrainingRule training = {};           // what rounds train on
  std::optional<int> gpu = std::nullopt;  // the GPU's index; none: the CPU
};

/// Throws InvalidArgument, with what would fit, if the round does not fit into memory. Allocates nothing.
void check_memory(const RoundSizes& sizes);

/// Wall-clock seconds of a round: one measurement per stage ("round/full/width", …), their
/// sum ("round/full/total"), and the mean of all rounds ("round/full/elapsed").
/// Each round adds a few pairs. With Retrain::kGrowth the rounds include one training on the whole history,
/// or several at equal distances, so that "elapsed" is the mean of a long trial at this number of pairs,
/// and the names begin with "round/full-growth/". On a GPU, all stages but "rank" are GPU time, the total
/// is the time from one list to the next, and "round/full/idle" is the part of it in which the GPU works on
/// no stage. The unit is measured before and after.
std::vector<Measurement> measure_round(const RoundSizes& sizes, ProductUnit& unit);

}  // namespace olrank
