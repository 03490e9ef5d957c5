#include "report/study.h"

#include <gtest/gtest.h>

#include <cmath>

namespace olrank {
namespace {

Calibration calibration_of(double target, const std::vector<CalibrationPoint>& points) {
  Calibration calibration{"diagonal", target, 7.0, false, points};
  match_alpha(calibration);
  return calibration;
}

TEST(MatchAlpha, InterpolatesOverLogAlpha) {
  // Halfway from 0.4 to 0.2 is halfway from 0.01 to 1 on a logarithmic axis.
  const Calibration found = calibration_of(0.3, {{0.01, 0.4, 100}, {1.0, 0.2, 100}, {10.0, 0.1, 100}});
  EXPECT_TRUE(found.bracketed);
  EXPECT_NEAR(found.alpha, 0.1, 1e-12);
}

TEST(MatchAlpha, PoolsRisingPointsWeightedByTheirOrders) {
  // 0.1 of 300 and 0.3 of 100 pool to 0.15, which the curve reaches at the first of the two.
  const Calibration found = calibration_of(0.15, {{0.01, 0.4, 100}, {0.1, 0.1, 300}, {1.0, 0.3, 100}});
  EXPECT_TRUE(found.bracketed);
  EXPECT_NEAR(found.alpha, 0.1, 1e-12);
}

TEST(MatchAlpha, TakesTheNearerEndIfTheTargetIsOutOfReach) {
  const std::vector<CalibrationPoint> points = {{0.01, 0.4, 100}, {1.0, 0.2, 100}};
  EXPECT_EQ(calibration_of(0.5, points).alpha, 0.01);
  EXPECT_FALSE(calibration_of(0.5, points).bracketed);
  EXPECT_EQ(calibration_of(0.1, points).alpha, 1.0);
  EXPECT_FALSE(calibration_of(0.1, points).bracketed);
}

TEST(MatchAlpha, IgnoresPointsWithoutCertainOrders) {
  const double none = std::nan("");
  EXPECT_EQ(calibration_of(0.3, {{0.01, none, 0}, {1.0, none, 0}}).alpha, 7.0);
  EXPECT_EQ(calibration_of(0.3, {{0.01, 0.4, 50}, {1.0, none, 0}}).alpha, 0.01);
  EXPECT_EQ(calibration_of(none, {{0.01, 0.4, 50}, {1.0, 0.1, 50}}).alpha, 7.0);
}

TEST(WholeTrialShare, WeightsEvaluationsByTheirCounts) {
  RecordedCurve curve;
  curve.points.resize(3);
  curve.points[1].values[Measure::kFalseCertain] = 0.5;
  curve.points[1].certain_orders = 10.0;
  curve.points[2].values[Measure::kFalseCertain] = 0.1;
  curve.points[2].certain_orders = 30.0;
  EXPECT_NEAR(whole_trial_share(curve, Measure::kFalseCertain), (5.0 + 3.0) / 40.0, 1e-15);
  EXPECT_TRUE(std::isnan(whole_trial_share(curve, Measure::kDecisionsDiffer)));
}

}  // namespace
}  // namespace olrank
