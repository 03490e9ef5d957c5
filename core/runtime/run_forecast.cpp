#include "core/runtime/run_forecast.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace olrank {
namespace {

/// A measured curve counts fully from this share of the rounds on; before, the calibration has a say.
constexpr double kEnoughMeasured = 0.1;
/// A trial's own speed counts fully once it has taken much longer than this share of its ranker's total.
constexpr double kOwnSpeedWeight = 0.05;

}  // namespace

RunForecast::RunForecast(const std::vector<std::size_t>& rankers, std::int64_t rounds, std::int64_t queries,
                         int jobs)
    : rounds_(std::max<std::int64_t>(1, rounds)), jobs_(std::max(1, jobs)) {
  std::size_t count = 0;
  for (const std::size_t ranker : rankers) {
    trials_.push_back({.ranker = ranker});
    count = std::max(count, ranker + 1);
  }
  rankers_.assign(count, Ranker{CostCurve(rounds_, queries), std::nullopt, 0.0, 0, false});
}

void RunForecast::calibrate(std::size_t ranker, const CostShape& shape, double setup) {
  rankers_[ranker].calibrated = shape;
  rankers_[ranker].setup += setup;
  ++rankers_[ranker].setups;
}

void RunForecast::start(std::size_t trial, std::int64_t rounds_before, double setup) {
  Trial& started = trials_[trial];
  started.state = State::kRunning;
  started.first_round = rounds_before;
  started.round = rounds_before;
  Ranker& ranker = rankers_[started.ranker];
  ranker.setup += setup;
  ++ranker.setups;
}

void RunForecast::play(std::size_t trial, std::int64_t round, double seconds) {
  Trial& playing = trials_[trial];
  Ranker& ranker = rankers_[playing.ranker];
  ranker.curve.add(playing.round, round, seconds);
  ranker.played = true;
  playing.round = round;
  playing.seconds += seconds;
}

void RunForecast::finish(std::size_t trial) {
  trials_[trial].state = State::kDone;
}

double RunForecast::correction() const {
  double measured = 0.0;
  double calibrated = 0.0;
  for (const Ranker& ranker : rankers_) {
    if (!ranker.played || !ranker.calibrated || ranker.curve.covered() < kEnoughMeasured) continue;
    measured += ranker.curve.total() * ranker.curve.covered();
    calibrated += ranker.calibrated->seconds(0.0, static_cast<double>(rounds_)) * ranker.curve.covered();
  }
  return measured > 0.0 && calibrated > 0.0 ? std::clamp(measured / calibrated, 0.25, 4.0) : 1.0;
}

std::optional<double> RunForecast::expected(const Ranker& ranker, std::int64_t from, std::int64_t to,
                                            double correction) const {
  const auto calibrated = [&]() -> std::optional<double> {
    if (!ranker.calibrated) return std::nullopt;
    return ranker.calibrated->seconds(static_cast<double>(from), static_cast<double>(to));
  }();
  if (!ranker.played) {
    if (!calibrated) return std::nullopt;
    return *calibrated * correction;
  }
  const double measured = ranker.curve.seconds(from, to);
  if (!calibrated) return measured;
  const double weight = std::min(1.0, ranker.curve.covered() / kEnoughMeasured);
  return weight * measured + (1.0 - weight) * *calibrated;
}

std::optional<double> RunForecast::work_left(const Trial& trial, double correction) const {
  if (trial.state == State::kDone) return 0.0;
  const Ranker& ranker = rankers_[trial.ranker];
  const auto rounds = expected(ranker, trial.round, rounds_, correction);
  if (!rounds) return std::nullopt;
  if (trial.state == State::kWaiting) {
    const double setup = ranker.setups > 0 ? ranker.setup / static_cast<double>(ranker.setups) : 0.0;
    return setup + *rounds;
  }
  const double usual = ranker.curve.seconds(trial.first_round, trial.round);
  const double balance = kOwnSpeedWeight * ranker.curve.total();
  const double own_speed = usual + balance > 0.0 ? (trial.seconds + balance) / (usual + balance) : 1.0;
  return *rounds * own_speed;
}

std::optional<double> RunForecast::seconds_left() const {
  const double factor = correction();
  // A ranker without any measurement is taken for an average one.
  double known = 0.0;
  std::int64_t known_trials = 0;
  std::vector<std::optional<double>> left;
  left.reserve(trials_.size());
  for (const Trial& trial : trials_) {
    left.push_back(work_left(trial, factor));
    const auto whole = expected(rankers_[trial.ranker], 0, rounds_, factor);
    if (!whole) continue;
    known += *whole;
    ++known_trials;
  }
  if (known_trials == 0) return std::nullopt;
  const double average = known / static_cast<double>(known_trials);
  // The jobs take the waiting trials in order, each when it is free.
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  double last = 0.0;
  for (std::size_t trial = 0; trial < trials_.size(); ++trial) {
    if (trials_[trial].state != State::kRunning) continue;
    free_at.push(left[trial].value_or(average));
    last = std::max(last, left[trial].value_or(average));
  }
  while (std::ssize(free_at) < jobs_) free_at.push(0.0);
  for (std::size_t trial = 0; trial < trials_.size(); ++trial) {
    if (trials_[trial].state != State::kWaiting) continue;
    const double end = free_at.top() + left[trial].value_or(average);
    free_at.pop();
    free_at.push(end);
    last = std::max(last, end);
  }
  return last;
}

double RunForecast::share_done() const {
  const double factor = correction();
  double done = 0.0;
  double left = 0.0;
  for (const Trial& trial : trials_) {
    done += expected(rankers_[trial.ranker], 0, trial.state == State::kDone ? rounds_ : trial.round, factor)
                .value_or(0.0);
    left += work_left(trial, factor).value_or(0.0);
  }
  return done + left > 0.0 ? done / (done + left) : 0.0;
}

}  // namespace olrank
