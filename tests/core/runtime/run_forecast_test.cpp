#include "core/runtime/run_forecast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

constexpr std::int64_t kRounds = 700;
constexpr std::int64_t kEvalEvery = 100;
const auto kKey = make_key({.seed = 7, .purpose = Purpose::kProbe});

/// Seconds of a round of some ranker, of which the training grows, and of an evaluation.
struct SimulatedRanker {
  std::string name;
  std::function<double(double)> training;
  double ranking = 0.0;
  double evaluation = 0.0;
  double setup = 0.0;
};

double seconds_of(const SimulatedRanker& ranker, std::int64_t round) {
  return ranker.ranking + ranker.training(static_cast<double>(round)) +
         (round % kEvalEvery == 0 ? ranker.evaluation : 0.0);
}

/// A run on a simulated clock: jobs take trials in order, and rounds vary by up to `noise`.
class SimulatedRun {
 public:
  SimulatedRun(std::vector<SimulatedRanker> rankers, std::int64_t seeds, int jobs, double noise,
               bool calibrated, std::int64_t queries = 1'000'000)
      : rankers_(std::move(rankers)),
        trials_(order(seeds, rankers_.size())),
        jobs_(jobs),
        noise_(noise),
        forecast_(trials_, kRounds, queries, jobs) {
    if (calibrated) calibrate(queries);
  }

  /// The time left that was forecast and the true one, at every twentieth of the whole run.
  struct Shown {
    double share = 0.0;  // of the time
    double forecast = 0.0;
    double truth = 0.0;
  };
  std::vector<Shown> play() {
    struct Job {
      double time = 0.0;
      std::int64_t trial = -1;
      std::int64_t round = 0;
    };
    std::vector<Job> jobs(jobs_);
    std::vector<std::pair<double, double>> forecasts;  // time, seconds left
    double end = 0.0;
    double next_look = 0.0;
    double work = 0.0;
    for (const std::size_t ranker : trials_) {
      for (std::int64_t round = 1; round <= kRounds; ++round) work += seconds_of(rankers_[ranker], round);
    }
    std::size_t next = 0;
    while (!jobs.empty()) {
      // The job whose next round ends first, as threads report when they are done.
      const auto first = std::ranges::min_element(jobs, {}, &Job::time);
      Job& job = *first;
      if (job.trial < 0) {
        if (next == trials_.size()) {
          jobs.erase(first);
          continue;
        }
        const SimulatedRanker& ranker = rankers_[trials_[next]];
        job.trial = static_cast<std::int64_t>(next++);
        job.round = 0;
        job.time += ranker.setup;
        forecast_.start(job.trial, 0, ranker.setup);
        continue;
      }
      const double seconds = noisy(seconds_of(rankers_[trials_[job.trial]], ++job.round));
      job.time += seconds;
      forecast_.play(job.trial, job.round, seconds);
      if (job.round == kRounds) {
        forecast_.finish(job.trial);
        job.trial = -1;
      }
      end = std::max(end, job.time);
      if (job.time < next_look) continue;
      next_look = job.time + work / jobs_ / 200.0;
      if (const auto left = forecast_.seconds_left()) forecasts.emplace_back(job.time, *left);
    }
    EXPECT_EQ(forecast_.share_done(), 1.0);
    std::vector<Shown> shown;
    for (double share = 0.05; share < 0.96; share += 0.05) {
      const auto at = std::lower_bound(forecasts.begin(), forecasts.end(), std::pair(share * end, 0.0));
      if (at == forecasts.end()) break;
      shown.push_back({share, at->second, end - at->first});
    }
    return shown;
  }

 private:
  static std::vector<std::size_t> order(std::int64_t seeds, std::size_t rankers) {
    std::vector<std::size_t> trials;
    for (std::size_t trial = 0; trial < seeds * rankers; ++trial) trials.push_back(trial % rankers);
    return trials;
  }
  double noisy(double seconds) { return seconds * (1.0 + noise_ * (2.0 * coins_.uniform() - 1.0)); }

  /// As the experiment does it: a quarter of a second, at most a twentieth of the rounds, the evaluation by
  /// itself.
  void calibrate(std::int64_t queries) {
    for (std::size_t number = 0; number < rankers_.size(); ++number) {
      const SimulatedRanker& ranker = rankers_[number];
      StageSeconds stages;
      double spent = 0.0;
      for (std::int64_t round = 1; round <= kRounds / 20 && spent < 0.25; ++round) {
        const auto at = static_cast<double>(round);
        stages["rank"].push_back({at, noisy(ranker.ranking)});
        stages["train"].push_back({at, noisy(ranker.training(at))});
        spent += stages["rank"].back().seconds + stages["train"].back().seconds;
      }
      CostShape shape =
          shape_of_stages(stages, queries, static_cast<double>(stages["rank"].size()) / kRounds);
      shape += CostShape(std::vector<RoundSeconds>{{1.0, ranker.evaluation / kEvalEvery}}, queries, 0.0);
      forecast_.calibrate(number, shape, ranker.setup);
    }
  }

  std::vector<SimulatedRanker> rankers_;
  std::vector<std::size_t> trials_;
  int jobs_;
  double noise_;
  RngStream coins_{kKey, 0};
  RunForecast forecast_;
};

/// Within these factors, and so many seconds, of the truth.
void expect_within(const SimulatedRun::Shown& at, double above, double below, double slack,
                   const std::string& what) {
  EXPECT_TRUE(at.forecast <= above * at.truth + slack && at.forecast >= at.truth / below - slack)
      << what << ": at " << at.share << " of the time " << at.forecast << " s were forecast and "
      << at.truth << " s were left";
}

/// Within a factor of 1.5 from a fifth of the time on; near the end within a hundredth of it all.
void expect_good(const std::vector<SimulatedRun::Shown>& shown, const std::string& what) {
  for (const SimulatedRun::Shown& at : shown)
    if (at.share >= 0.2) expect_within(at, 1.5, 1.5, 0.01 * at.truth / (1.0 - at.share), what);
}

SimulatedRanker constant(double seconds) {
  return {"constant", [](double) { return 0.0; }, seconds, 0.01, 0.01};
}
SimulatedRanker linear(double first, double slope) {
  return {"linear", [=](double round) { return slope * round; }, first, 0.1, 0.05};
}
SimulatedRanker growing(const std::string& name, std::function<double(double)> training) {
  return {name, std::move(training), 0.001, 0.05, 0.0};
}

/// Returns what the quickstart's rankers cost: two fast ones and three networks that grow.
std::vector<SimulatedRanker> quickstart() {
  return {constant(0.001), constant(0.00015), linear(0.004, 0.0002), linear(0.016, 0.00025),
          linear(0.008, 0.0003)};
}

TEST(RunForecast, RightFromAFifthOnWithVeryDifferentRankers) {
  for (const int jobs : {1, 2, 4}) {
    for (const std::int64_t seeds : {1, 2, 5}) {
      expect_good(SimulatedRun(quickstart(), seeds, jobs, 0.3, true).play(),
                  "jobs " + std::to_string(jobs) + ", seeds " + std::to_string(seeds));
    }
  }
}

TEST(RunForecast, OneRankerNeedsNoCalibration) {
  for (const auto& ranker :
       {constant(0.01), linear(0.001, 0.001), growing("parabola", [](double t) { return 1e-6 * t * t; }),
        growing("saturating", [](double t) { return std::min(t, 350.0) * 1e-4; })}) {
    for (const std::int64_t seeds : {1, 3})
      expect_good(SimulatedRun({ranker}, seeds, 1, 0.2, false).play(), ranker.name);
  }
}

TEST(RunForecast, SurvivesAChangeOfForm) {
  // A covariance whose cost grows with the pairs until another form is cheaper: no measurement announces
  // it.
  const std::vector ranker{
      growing("dual, then primal", [](double t) { return t < 400 ? 1e-6 * t * t : 0.16; })};
  for (const auto& at : SimulatedRun(ranker, 1, 1, 0.2, false).play())
    if (at.share >= 0.2) expect_within(at, 2.2, 1.5, 1.0, "first");
  // The second trial knows.
  for (const auto& at : SimulatedRun(ranker, 2, 1, 0.2, false).play())
    if (at.share >= 0.5) expect_within(at, 1.1, 1.1, 1.0, "second");
}

TEST(RunForecast, KnowsThatQueriesComeBack) {
  const double queries = 50.0;
  const auto network =
      growing("network", [=](double t) { return 0.0004 * queries * (1.0 - std::exp(-t / queries)); });
  const auto shown = SimulatedRun({constant(0.002), network}, 1, 1, 0.2, true, 50).play();
  // Known from the calibration alone, before the network's first round.
  for (const SimulatedRun::Shown& at : shown) expect_within(at, 1.5, 1.5, 0.05, "network");
}

TEST(RunForecast, CalibrationsAreCorrectedByWhatIsMeasured) {
  RunForecast forecast({0, 1}, 100, 1000, 1);
  const std::vector<RoundSeconds> second = {{1.0, 1.0}};
  forecast.calibrate(0, CostShape(second, 1000, 0.0), 0.0);
  forecast.calibrate(1, CostShape(second, 1000, 0.0), 0.0);
  EXPECT_TRUE(std::fabs(*forecast.seconds_left() - 200.0) <= 1e-9);
  forecast.start(0, 0, 0.0);
  forecast.play(0, 100, 200.0);  // twice as slow
  forecast.finish(0);
  EXPECT_TRUE(std::fabs(*forecast.seconds_left() - 200.0) <= 1e-6) << *forecast.seconds_left();
  EXPECT_TRUE(std::fabs(forecast.share_done() - 0.5) <= 1e-6) << forecast.share_done();
}

TEST(RunForecast, TheLongestJobDecides) {
  RunForecast forecast({0, 1, 0}, 100, 1000, 2);
  forecast.calibrate(0, CostShape(std::vector<RoundSeconds>{{1.0, 0.1}}, 1000, 0.0), 2.0);
  forecast.calibrate(1, CostShape(std::vector<RoundSeconds>{{1.0, 1.0}}, 1000, 0.0), 0.0);
  // 12 s, then 12 s more, next to 100 s.
  EXPECT_TRUE(std::fabs(*forecast.seconds_left() - 100.0) <= 1e-9) << *forecast.seconds_left();
}

TEST(RunForecast, KnowsNothingWithoutMeasurements) {
  const RunForecast forecast({0, 0}, 100, 1000, 1);
  EXPECT_FALSE(forecast.seconds_left().has_value());
  EXPECT_EQ(forecast.share_done(), 0.0);
}

TEST(RunForecast, ResumedRoundsAreNoWork) {
  RunForecast forecast({0, 0}, 100, 1000, 1);
  forecast.finish(1);
  forecast.start(0, 60, 0.0);
  forecast.play(0, 80, 20.0);
  EXPECT_TRUE(std::fabs(*forecast.seconds_left() - 20.0) <= 1e-6) << *forecast.seconds_left();
}

TEST(CostCurve, SumsWhatWasMeasured) {
  CostCurve curve(1000, 100'000);
  curve.add(0, 500, 10.0);
  curve.add(500, 1000, 30.0);
  EXPECT_TRUE(std::fabs(curve.total() - 40.0) <= 1e-9);
  EXPECT_TRUE(std::fabs(curve.seconds(250, 750) - 20.0) <= 1e-9);
  EXPECT_EQ(curve.covered(), 1.0);
  curve.add(0, 1000, 80.0);  // a slower trial
  EXPECT_TRUE(std::fabs(curve.total() - 60.0) <= 1e-9) << curve.total();
}

TEST(CostCurve, IgnoresWhatIsNoMeasurement) {
  CostCurve curve(10, 10);
  curve.add(3, 3, 1.0);
  curve.add(5, 4, 1.0);
  curve.add(0, 1, std::nan(""));
  EXPECT_EQ(curve.total(), 0.0);
  EXPECT_EQ(curve.covered(), 0.0);
}

}  // namespace
}  // namespace olrank
