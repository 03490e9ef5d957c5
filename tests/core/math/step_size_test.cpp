#include "core/math/optimizer_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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

TEST(StepSizeTest, TrainingsFailByARiseOrAnExplosion) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(training_failed(10.0, 10.0, 20.0, true, 0));
  EXPECT_TRUE(training_failed(10.0, 10.001, 20.0, true, 0));
  // A repeat may raise the loss, but by no more than itself and 1 a pair.
  EXPECT_FALSE(training_failed(10.0, 40.0, 20.0, true, 1));
  EXPECT_TRUE(training_failed(10.0, 40.1, 20.0, true, 1));
  EXPECT_FALSE(training_failed(-10.0, 20.0, 20.0, true, 2));
  EXPECT_TRUE(training_failed(-10.0, 20.1, 20.0, true, 2));
  // LambdaRank's may rise, but not without bound; a loss with noise may fall below 0, but not without
  // bound.
  EXPECT_FALSE(training_failed(10.0, 1e7, 20.0, false, 0));
  for (const int repeats : {0, 1, 40}) {
    for (const double ended : {3e7, -3e7, infinite, -infinite, std::nan("")}) {
      EXPECT_TRUE(training_failed(10.0, ended, 20.0, false, repeats)) << ended;
      EXPECT_TRUE(training_failed(10.0, ended, 20.0, true, repeats)) << ended;
    }
    EXPECT_TRUE(training_failed(infinite, 1.0, 20.0, false, repeats));
    EXPECT_TRUE(training_failed(std::nan(""), 1.0, 20.0, true, repeats));
  }
  // A step that is short enough never fails, even where one list dominates the loss.
  EXPECT_FALSE(training_failed(1e12, 1e12, 20.0, true, 0));
  EXPECT_FALSE(training_failed(1e12, 1.001e12, 20.0, false, 5));
  EXPECT_TRUE(can_repeat(10.0, kMostRepeats - 1));
  EXPECT_FALSE(can_repeat(10.0, kMostRepeats));
  EXPECT_FALSE(can_repeat(std::nan(""), 0)) << "no step helps parameters that give no scores";
  EXPECT_EQ(repeated_rate(0.8, 3), 0.1);
}

TEST(StepSizeTest, CurvatureIsStaleAfterATenthMorePairs) {
  EXPECT_TRUE(curvature_is_stale(1, 0));
  EXPECT_FALSE(curvature_is_stale(109, 100));
  EXPECT_TRUE(curvature_is_stale(110, 100));
}

}  // namespace
}  // namespace olrank
