#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/runtime/cost_curve.h"

namespace olrank {

/// How long an experiment will still take: trials of very different rankers, several in parallel, in a
/// known order. Each ranker has a cost curve, at first from a short calibration, then from what its trials
/// take. Pure: the caller has the clock.
class RunForecast {
 public:
  /// `rankers`: the number of the ranker of each trial, in the order in which trials start.
  RunForecast(const std::vector<std::size_t>& rankers, std::int64_t rounds, std::int64_t queries, int jobs);

  /// The cost of a ranker as a calibration has it, and the seconds to construct one.
  void calibrate(std::size_t ranker, const CostShape& shape, double setup);

  void start(std::size_t trial, std::int64_t rounds_before, double setup);
  /// The trial has played up to this round; `seconds` since the previous call for this trial.
  void play(std::size_t trial, std::int64_t round, double seconds);
  void finish(std::size_t trial);
  /// It was finished before, or failed: no work is left.
  void drop(std::size_t trial) { finish(trial); }

  /// Until the last trial ends; nothing while some of the costs are unknown.
  std::optional<double> seconds_left() const;
  /// The share of the work that is done, in seconds of a single job; 0 while costs are unknown.
  double share_done() const;

 private:
  enum class State { kWaiting, kRunning, kDone };
  struct Trial {
    std::size_t ranker = 0;
    State state = State::kWaiting;
    std::int64_t first_round = 0;
    std::int64_t round = 0;
    double seconds = 0.0;
  };
  struct Ranker {
    CostCurve curve;
    std::optional<CostShape> calibrated;
    double setup = 0.0;  // seconds, sum over `setups`
    std::int64_t setups = 0;
    bool played = false;
  };

  std::optional<double> work_left(const Trial& trial, double correction) const;
  /// How calibrations compare with what was measured so far.
  double correction() const;
  std::optional<double> expected(const Ranker& ranker, std::int64_t from, std::int64_t to,
                                 double correction) const;

  std::int64_t rounds_;
  int jobs_;
  std::vector<Trial> trials_;
  std::vector<Ranker> rankers_;
};

}  // namespace olrank
