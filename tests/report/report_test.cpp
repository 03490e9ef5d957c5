#include "report/report.h"

#include <gtest/gtest.h>

#include <deque>

namespace olrank {
namespace {

/// Owns trials with offline NDCG by round.
class Trials {
 public:
  const TrialResults* add(std::int64_t fold, std::int64_t seed, const Curve& curve) {
    TrialResults trial;
    trial.identity = {"x", "perfect", fold, seed};
    for (const auto& [round, value] : curve) {
      CurveEvaluation point;
      point.round = round;
      point.values[Measure::kOfflineNdcg] = value;
      trial.curve.points.push_back(point);
    }
    kept_.push_back(trial);
    return &kept_.back();
  }

 private:
  std::deque<TrialResults> kept_;
};

TEST(TrialCurves, AreThoseOfEachFoldAndSeed) {
  Trials trials;
  const auto* one = trials.add(1, 1, {{0, 0.1}, {10, 0.3}});
  const auto* two = trials.add(1, 2, {{0, 0.2}, {10, 0.5}});
  const auto* other = trials.add(2, 1, {{0, 0.7}});
  EXPECT_EQ(trial_curves({one, two, other}, Measure::kOfflineNdcg),
            (std::vector<Curve>{{{0, 0.1}, {10, 0.3}}, {{0, 0.2}, {10, 0.5}}, {{0, 0.7}}}));
  EXPECT_TRUE(trial_curves({one}, Measure::kRegret).empty());
}

TEST(DifferenceCurves, PairByFoldSeedAndRound) {
  // Levels differ by 10 between seeds, differences by 0.2: 1 ± 12.706 · 0.1414 / √2.
  Trials trials;
  const auto* a1 = trials.add(1, 1, {{0, 1.0}, {10, 11.1}, {20, 9.0}});
  const auto* a2 = trials.add(1, 2, {{0, 1.0}, {10, 20.9}});
  const auto* a3 = trials.add(1, 3, {{10, 55.0}});  // without a partner
  const auto* b1 = trials.add(1, 1, {{0, 1.0}, {10, 10.0}});
  const auto* b2 = trials.add(1, 2, {{0, 1.0}, {10, 20.0}});
  const DifferenceCurves found = difference_curves({a1, a2, a3}, {b1, b2}, Measure::kOfflineNdcg);
  ASSERT_EQ(found.mean.size(), 2U);
  EXPECT_EQ(found.mean[1].round, 10);
  EXPECT_NEAR(found.mean[1].estimate.mean, 1.0, 1e-12);
  EXPECT_NEAR(found.mean[1].estimate.half_width, 1.2706, 1e-4);
  ASSERT_EQ(found.trials.size(), 2U);
  EXPECT_NEAR(found.trials[0][1].second, 1.1, 1e-12);
  EXPECT_EQ(most_trials(found.mean), 2U);
}

}  // namespace
}  // namespace olrank
