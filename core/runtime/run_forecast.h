#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace olrank {

/// Mean seconds of a round, at a point of the trial.
struct RoundSeconds {
  double round = 0.0;
  double seconds = 0.0;
};

/// A round of a ranker costs a sum of simple shapes: a constant, the growth of a history whose queries come
/// back, a line and a parabola. No coefficient is negative.
class CostShape {
 public:
  using Terms = std::array<double, 4>;

  CostShape() = default;
  /// The simplest sum that fits the points, by least squares and the Bayesian information criterion.
  /// `queries`: of the training part; of a trial with many more rounds than these, the history stops
  /// growing. `covered`: the share of the trial's rounds that the points cover; with a small one, lines and
  /// parabolas are left out, because they would be extrapolated from noise.
  CostShape(std::span<const RoundSeconds> points, std::int64_t queries, double covered);

  /// Returns the cost of the rounds after `from` up to `to`.
  double seconds(double from, double to) const;
  CostShape& operator+=(const CostShape& other);

 private:
  Terms coefficients_{};
  double queries_ = 1.0;
};

/// The seconds of a ranker's rounds: measured as far as rounds were played, extrapolated beyond.
class CostCurve {
 public:
  CostCurve(std::int64_t rounds, std::int64_t queries);

  /// The rounds after `from` up to `to` took these seconds, in one trial.
  void add(std::int64_t from, std::int64_t to, double seconds);
  /// Expected seconds of the rounds after `from` up to `to`.
  double seconds(std::int64_t from, std::int64_t to) const;
  double total() const { return seconds(0, rounds_); }
  /// The share of the rounds that has been measured.
  double covered() const;

 private:
  struct Bin {
    double seconds = 0.0;
    double rounds = 0.0;
  };

  std::size_t covered_bins() const;
  void fit() const;

  std::int64_t rounds_;
  std::int64_t queries_;
  double width_;  // rounds in a bin
  std::vector<Bin> bins_;
  // Fitted when it is first needed after new measurements.
  mutable bool fitted_ = false;
  mutable CostShape shape_;
  mutable std::vector<double> until_;  // seconds of the bins before each one
};

/// Seconds of the same rounds, by stage.
using StageSeconds = std::map<std::string, std::vector<RoundSeconds>>;

/// Each stage is extrapolated by itself, as only some grow with the history: their growth would be lost in
/// the variation of the others. `covered`: the share of the trial's rounds that was played.
CostShape shape_of_stages(const StageSeconds& stages, std::int64_t queries, double covered);

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
  /// No work is left: it has ended, was finished before, or failed.
  void finish(std::size_t trial);

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
