#pragma once

#include <cstdint>

#include "core/runtime/cost_curve.h"
#include "sim/trial.h"
#include "sim/trial_settings.h"

namespace olrank {

/// A calibration says what the first rounds of a trial tell about the cost of all.
struct Calibration {
  CostShape shape;  // of its rounds, evaluations included
  double seconds = 0.0;
  std::int64_t rounds = 0;  // played
};

/// Plays a fresh trial in memory for about `seconds`, at most `most_rounds`.
Calibration calibrate(Trial& trial, const TrialSettings& settings, std::int64_t queries, double seconds,
                      std::int64_t most_rounds);

}  // namespace olrank
