#include "core/math/step_size.h"

#include <gtest/gtest.h>

namespace olrank {
namespace {

TEST(StepSizeTest, IsTheRateOverTheLargestCurvature) {
  // m = 10, λ = 3: the loss has ½·30 ‖θ − θ₀‖², whose curvature is 30.
  const double weight = prior_weight_of(10.0, 3.0);
  EXPECT_EQ(weight, 15.0);
  EXPECT_EQ(prior_curvature(weight), 30.0);
  EXPECT_EQ(stable_step(0.5, 20.0, prior_curvature(weight)), 0.01);
}

TEST(StepSizeTest, RateDecaysWithEachTraining) {
  EXPECT_EQ(decayed_rate(0.8, 0.5, 0), 0.8);
  EXPECT_EQ(decayed_rate(0.8, 0.5, 2), 0.2);
}

TEST(StepSizeTest, CurvatureIsStaleAfterATenthMorePairs) {
  EXPECT_TRUE(curvature_is_stale(1, 0));
  EXPECT_FALSE(curvature_is_stale(109, 100));
  EXPECT_TRUE(curvature_is_stale(110, 100));
}

}  // namespace
}  // namespace olrank
