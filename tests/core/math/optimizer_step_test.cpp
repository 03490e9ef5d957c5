#include "core/math/optimizer_step.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

TEST(OptimizerElementTest, NanStaysVisible) {
  EXPECT_TRUE(std::isnan(gradient_descent_element(0.1, kNan, 1.0)));
  EXPECT_TRUE(std::isnan(decayed_element(0.1, 0.0, kNan, 1.0)));
  EXPECT_TRUE(std::isnan(nesterov_element(0.1, kNan, 1.0, 1.0).theta));
  EXPECT_TRUE(std::isnan(adam_element(0.1, step_rates(1, 0.0), kNan, {0.0, 0.0, 1.0}).position));
}

TEST(OptimizerElementTest, CorrectionsApproachOne) {
  const StepRates first = step_rates(1, 0.25);
  EXPECT_NEAR(first.first_correction, 0.1, 1e-15);
  EXPECT_NEAR(first.second_correction, 0.001, 1e-15);
  EXPECT_EQ(first.decay, 0.25);
  const StepRates late = step_rates(1'000'000, 0.0);
  EXPECT_EQ(late.first_correction, 1.0);
  EXPECT_EQ(late.second_correction, 1.0);
}

}  // namespace
}  // namespace olrank
