#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/runtime/cost_curve.h"
#include "sim/trial.h"
#include "sim/trial_settings.h"

namespace olrank {

/// What the first rounds of a trial say about the cost of all.
struct Calibration {
  CostShape shape;  // of its rounds, evaluations included
  double seconds = 0.0;
  std::int64_t rounds = 0;  // played
};

/// Seconds of the same rounds, by stage.
using StageSeconds = std::map<std::string, std::vector<RoundSeconds>>;

/// Each stage is extrapolated by itself, as only some grow with the history: their growth would be lost in
/// the variation of the others. `covered`: the share of the trial's rounds that was played.
CostShape shape_of_stages(const StageSeconds& stages, std::int64_t queries, double covered);

/// Plays a fresh trial in memory for about `seconds`, at most `most_rounds`.
Calibration calibrate(Trial& trial, const TrialSettings& settings, std::int64_t queries, double seconds,
                      std::int64_t most_rounds);

}  // namespace olrank
