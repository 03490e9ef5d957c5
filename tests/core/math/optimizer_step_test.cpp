#include "core/math/optimizer_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random/rng_stream.h"
#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

// Rounding of a few operations on numbers of about 1.
constexpr double kTolerance = 1e-14;

TEST(OptimizerElementTest, MatchesLongDoubleFormulas) {
  RngStream draws(make_key({.seed = 44, .purpose = Purpose::kProbe}), 0);
  for (std::int64_t number = 1; number <= 2000; ++number) {
    const double step = draws.uniform();
    const double decay = draws.uniform();
    const double gradient = draws.normal();
    const double position = draws.normal();
    const double theta = draws.normal();
    const auto g = static_cast<long double>(gradient);
    EXPECT_NEAR(gradient_descent_element(step, gradient, theta), static_cast<double>(theta - step * g),
                kTolerance);
    EXPECT_NEAR(decayed_element(step, decay, gradient, position),
                static_cast<double>(position - step * (g + static_cast<long double>(decay) * position)),
                kTolerance);
    const NesterovElement nesterov = nesterov_element(step, gradient, position, theta);
    const long double moved = theta - step * g;
    EXPECT_NEAR(nesterov.position, static_cast<double>(moved), kTolerance);
    EXPECT_NEAR(nesterov.velocity, static_cast<double>(moved - position), kTolerance);
    EXPECT_NEAR(nesterov.theta, static_cast<double>(moved + 0.9L * (moved - position)), kTolerance);

    const AdamElement before{draws.normal(), 0.5 + draws.uniform(), position};
    const AdamElement adam = adam_element(step, step_rates(number, decay), gradient, before);
    const long double slope = g + static_cast<long double>(decay) * position;
    const long double first = 0.9L * before.first + 0.1L * slope;
    const long double second = 0.999L * before.second + 0.001L * slope * slope;
    const auto power = static_cast<long double>(number);
    const long double unbiased = first / (1.0L - std::pow(0.9L, power));
    const long double unbiased_square = second / (1.0L - std::pow(0.999L, power));
    EXPECT_NEAR(adam.first, static_cast<double>(first), kTolerance);
    EXPECT_NEAR(adam.second, static_cast<double>(second), kTolerance);
    // 1 − 0.999ⁿ loses up to three digits, and 0.001 and 0.999 are not exact in double.
    EXPECT_NEAR(adam.position,
                static_cast<double>(position - step * unbiased / (std::sqrt(unbiased_square) + 1e-8L)),
                1e-11);
  }
}

TEST(OptimizerElementTest, StaysWithoutStepOrGradient) {
  EXPECT_EQ(gradient_descent_element(0.0, 5.0, 0.3), 0.3);
  EXPECT_EQ(gradient_descent_element(1.0, 0.0, 0.3), 0.3);
  EXPECT_EQ(decayed_element(1.0, 0.0, 0.0, 0.3), 0.3);
  EXPECT_EQ(nesterov_element(1.0, 0.0, 0.3, 0.3).theta, 0.3);
  EXPECT_EQ(adam_element(1.0, step_rates(1, 0.0), 0.0, {0.0, 0.0, 0.3}).position, 0.3);
}

TEST(OptimizerElementTest, AdamsFirstStepIsTheGradientsSign) {
  for (const double gradient : {1e-3, 1.0, 1e100, -1e-3, -1.0, -1e100}) {
    const AdamElement next = adam_element(0.5, step_rates(1, 0.0), gradient, {0.0, 0.0, 0.0});
    // ε = 1e-8 beside the smallest gradient.
    EXPECT_NEAR(next.position, gradient > 0.0 ? -0.5 : 0.5, 1e-5);
  }
}

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
