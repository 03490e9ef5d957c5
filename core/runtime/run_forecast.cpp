#include "core/runtime/run_forecast.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>

namespace olrank {
namespace {

/// A measured curve counts fully from this share of the rounds on; before, the calibration has a say.
constexpr double kEnoughMeasured = 0.1;
/// A trial's own speed counts fully once it has taken much longer than this share of its ranker's total.
constexpr double kOwnSpeedWeight = 0.05;

constexpr std::size_t kMostBins = 200;
constexpr double kEnoughForParabolas = 0.15;  // share of the rounds
using Terms = CostShape::Terms;

/// Constant, history of returning queries, line, parabola.
Terms terms_at(double round, double queries) {
  return {1.0, queries * -std::expm1(-round / queries), round, round * round};
}

/// ∫ of terms_at() from 0.
Terms integral_to(double round, double queries) {
  return {round, queries * (round + queries * std::expm1(-round / queries)), round * round / 2.0,
          round * round * round / 3.0};
}

struct Fit {
  Terms coefficients{};
  double error = 0.0;  // weighted squares
};

/// Least squares over the chosen terms, by Gauss elimination of at most three equations; nothing if they
/// are nearly dependent or a coefficient is negative.
std::optional<Fit> fit_terms(std::span<const RoundSeconds> points, std::span<const double> weights,
                             double queries, std::span<const std::size_t> chosen) {
  const std::size_t n = chosen.size();
  double system[3][4] = {};
  Terms scale{};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Terms terms = terms_at(points[i].round, queries);
    for (const std::size_t term : chosen) scale[term] = std::max(scale[term], terms[term]);
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Terms terms = terms_at(points[i].round, queries);
    for (std::size_t a = 0; a < n; ++a) {
      const double left = weights[i] * terms[chosen[a]] / scale[chosen[a]];
      for (std::size_t b = 0; b < n; ++b) system[a][b] += left * terms[chosen[b]] / scale[chosen[b]];
      system[a][3] += left * points[i].seconds;
    }
  }
  for (std::size_t a = 0; a < n; ++a) {
    const double before = system[a][a];
    for (std::size_t c = 0; c < a; ++c) {
      const double factor = system[a][c] / system[c][c];
      for (std::size_t b = c; b < n; ++b) system[a][b] -= factor * system[c][b];
      system[a][3] -= factor * system[c][3];
    }
    if (!(system[a][a] > 1e-6 * before)) return std::nullopt;
  }
  Fit fit;
  for (std::size_t a = n; a-- > 0;) {
    double value = system[a][3];
    for (std::size_t b = a + 1; b < n; ++b)
      value -= system[a][b] * fit.coefficients[chosen[b]] * scale[chosen[b]];
    value /= system[a][a];
    if (!(value >= 0.0)) return std::nullopt;
    fit.coefficients[chosen[a]] = value / scale[chosen[a]];
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Terms terms = terms_at(points[i].round, queries);
    double value = 0.0;
    for (const std::size_t term : chosen) value += fit.coefficients[term] * terms[term];
    fit.error += weights[i] * (value - points[i].seconds) * (value - points[i].seconds);
  }
  return fit;
}

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
  if (!ranker.calibrated && !ranker.played) return std::nullopt;
  if (!ranker.calibrated) return ranker.curve.seconds(from, to);
  const double calibrated = ranker.calibrated->seconds(static_cast<double>(from), static_cast<double>(to));
  if (!ranker.played) return calibrated * correction;
  const double weight = std::min(1.0, ranker.curve.covered() / kEnoughMeasured);
  return weight * ranker.curve.seconds(from, to) + (1.0 - weight) * calibrated;
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

CostShape::CostShape(std::span<const RoundSeconds> points, std::int64_t queries, double covered)
    : queries_(static_cast<double>(std::max<std::int64_t>(1, queries))) {
  double mean = 0.0;
  for (const RoundSeconds& point : points) mean += point.seconds / static_cast<double>(points.size());
  if (!(mean > 0.0)) return;
  // Errors are relative, and cheap rounds must not count for everything.
  std::vector<double> weights;
  weights.reserve(points.size());
  for (const RoundSeconds& point : points)
    weights.push_back(1.0 / ((point.seconds + mean) * (point.seconds + mean)));
  const auto count = static_cast<double>(points.size());
  const std::size_t most_terms = std::min<std::size_t>(3, points.size());
  const unsigned allowed = covered >= kEnoughForParabolas ? 0b1111U : 0b0011U;
  double best = std::numeric_limits<double>::infinity();
  for (unsigned set = 1; set <= allowed; ++set) {
    std::vector<std::size_t> chosen;
    for (std::size_t term = 0; term < coefficients_.size(); ++term) {
      if ((set >> term & 1U) != 0) chosen.push_back(term);
    }
    if (chosen.size() > most_terms || (set & ~allowed) != 0) continue;
    const auto fit = fit_terms(points, weights, queries_, chosen);
    if (!fit) continue;
    // Below a relative error of a per mille, the simpler sum is good enough.
    const double error = std::max(fit->error / count, 1e-6);
    const double criterion =
        count * std::log(error) + 2.0 * static_cast<double>(chosen.size()) * std::log(count + 1.0);
    if (criterion >= best) continue;
    best = criterion;
    coefficients_ = fit->coefficients;
  }
}

double CostShape::seconds(double from, double to) const {
  const Terms at_from = integral_to(from, queries_);
  const Terms at_to = integral_to(to, queries_);
  double seconds = 0.0;
  for (std::size_t term = 0; term < coefficients_.size(); ++term)
    seconds += coefficients_[term] * (at_to[term] - at_from[term]);
  return seconds;
}

CostShape& CostShape::operator+=(const CostShape& other) {
  for (std::size_t term = 0; term < coefficients_.size(); ++term)
    coefficients_[term] += other.coefficients_[term];
  queries_ = std::max(queries_, other.queries_);
  return *this;
}

CostCurve::CostCurve(std::int64_t rounds, std::int64_t queries)
    : rounds_(std::max<std::int64_t>(1, rounds)),
      queries_(queries),
      bins_(static_cast<std::size_t>(std::min<std::int64_t>(rounds_, kMostBins))) {
  width_ = static_cast<double>(rounds_) / static_cast<double>(bins_.size());
}

void CostCurve::add(std::int64_t from, std::int64_t to, double seconds) {
  to = std::min(to, rounds_);
  if (to <= from || !(seconds >= 0.0)) return;
  const double each = seconds / static_cast<double>(to - from);
  auto at = static_cast<double>(from);
  for (auto bin = static_cast<std::size_t>(at / width_); bin < bins_.size(); ++bin) {
    const double end = std::min(static_cast<double>(bin + 1) * width_, static_cast<double>(to));
    if (end > at) {
      bins_[bin].seconds += each * (end - at);
      bins_[bin].rounds += end - at;
      at = end;
    }
    if (at >= static_cast<double>(to)) break;
  }
  fitted_ = false;
}

std::size_t CostCurve::covered_bins() const {
  return bins_.rend() -
         std::find_if(bins_.rbegin(), bins_.rend(), [](const Bin& bin) { return bin.rounds > 0.0; });
}

double CostCurve::covered() const {
  return static_cast<double>(covered_bins()) / static_cast<double>(bins_.size());
}

void CostCurve::fit() const {
  std::vector<RoundSeconds> points;
  for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
    if (bins_[bin].rounds <= 0.0) continue;
    points.push_back({(static_cast<double>(bin) + 0.5) * width_, bins_[bin].seconds / bins_[bin].rounds});
  }
  shape_ = CostShape(points, queries_, covered());
  // Where the shape does not follow what was measured last, its continuation starts from there.
  until_.assign(bins_.size() + 1, 0.0);
  const std::size_t covered = covered_bins();
  double recent_measured = 0.0;
  double recent_fitted = 0.0;
  for (std::size_t bin = covered - std::min(covered, std::max<std::size_t>(3, covered / 5)); bin < covered;
       ++bin) {
    if (bins_[bin].rounds <= 0.0) continue;
    recent_measured += bins_[bin].seconds / bins_[bin].rounds * width_;
    recent_fitted +=
        shape_.seconds(static_cast<double>(bin) * width_, static_cast<double>(bin + 1) * width_);
  }
  const double continued =
      recent_fitted > 0.0 ? std::clamp(recent_measured / recent_fitted, 0.5, 2.0) : 1.0;
  for (std::size_t bin = 0; bin < bins_.size(); ++bin) {
    const double fitted =
        shape_.seconds(static_cast<double>(bin) * width_, static_cast<double>(bin + 1) * width_);
    const double own = bins_[bin].rounds > 0.0 ? bins_[bin].seconds / bins_[bin].rounds * width_
                       : bin >= covered        ? fitted * continued
                                               : fitted;
    until_[bin + 1] = until_[bin] + own;
  }
  fitted_ = true;
}

double CostCurve::seconds(std::int64_t from, std::int64_t to) const {
  if (!fitted_) fit();
  const auto at = [&](std::int64_t round) {
    const double place =
        std::clamp(static_cast<double>(round) / width_, 0.0, static_cast<double>(bins_.size()));
    const auto bin = std::min(static_cast<std::size_t>(place), bins_.size() - 1);
    return until_[bin] + (until_[bin + 1] - until_[bin]) * (place - static_cast<double>(bin));
  };
  return std::max(0.0, at(to) - at(from));
}

CostShape shape_of_stages(const StageSeconds& stages, std::int64_t queries, double covered) {
  CostShape shape;
  for (const auto& [name, points] : stages) shape += CostShape(points, queries, covered);
  return shape;
}

}  // namespace olrank
