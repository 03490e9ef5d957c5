#include "core/ops/optimizer_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/core/ops/network_fixture.h"

namespace olrank {
namespace {

constexpr std::size_t kSize = 133;  // no multiple of a vector register

std::vector<double> gradient_number(std::uint32_t number) {
  std::vector<double> gradient;
  RngStream draws(test_key(80), number);
  for (std::size_t k = 0; k < kSize; ++k) gradient.push_back(draws.normal());
  return gradient;
}

std::vector<float> start() {
  return random_numbers(static_cast<std::int64_t>(kSize), 81);
}

TEST(OptimizerStepTest, GradientDescentRoundsOnce) {
  std::vector<float> theta = start();
  const std::vector<float> before = theta;
  const auto gradient = gradient_number(1);
  gradient_descent_step(0.125, gradient, theta);
  for (std::size_t k = 0; k < kSize; ++k) {
    EXPECT_EQ(theta[k], static_cast<float>(double{before[k]} - 0.125 * gradient[k]));
  }
}

TEST(OptimizerStepTest, DecayedStepsKeepThePositionInDouble) {
  std::vector<float> theta = start();
  std::vector<double> position(theta.begin(), theta.end());
  std::vector<double> expected = position;
  for (std::uint32_t number = 1; number <= 3; ++number) {
    const auto gradient = gradient_number(number);
    decayed_step(0.1, 0.3, gradient, position, theta);
    for (std::size_t k = 0; k < kSize; ++k) {
      expected[k] -= 0.1 * (gradient[k] + 0.3 * expected[k]);
      EXPECT_EQ(position[k], expected[k]);
      EXPECT_EQ(theta[k], static_cast<float>(expected[k]));
    }
  }
}

// Nesterov's method in its usual form: v' = 0.9 v − step g(x + 0.9 v), x' = x + v'.
TEST(OptimizerStepTest, NesterovMatchesTheUsualForm) {
  std::vector<float> theta = start();
  std::vector<double> x(theta.begin(), theta.end());
  std::vector<double> v(kSize);
  std::vector<double> velocity(kSize);
  std::vector<double> position = x;
  for (std::uint32_t number = 1; number <= 4; ++number) {
    const auto gradient = gradient_number(number);
    nesterov_step(0.05, gradient, velocity, position, theta);
    for (std::size_t k = 0; k < kSize; ++k) {
      v[k] = 0.9 * v[k] - 0.05 * gradient[k];
      x[k] += v[k];
      // θ is x + 0.9 v, rounded to float32 at every step.
      EXPECT_NEAR(theta[k], x[k] + 0.9 * v[k], 2e-6 * (1.0 + std::abs(x[k])));
    }
  }
}

TEST(OptimizerStepTest, AdamMatchesItsFormula) {
  std::vector<float> theta = start();
  std::vector<double> position(theta.begin(), theta.end());
  std::vector<double> expected = position;
  std::vector<double> first(kSize);
  std::vector<double> second(kSize);
  std::vector<double> mean(kSize);
  std::vector<double> square(kSize);
  constexpr double kDecay = 0.3;
  for (int number = 1; number <= 5; ++number) {
    const auto gradient = gradient_number(static_cast<std::uint32_t>(number));
    adam_step(number, 0.1, kDecay, gradient, {first, second}, position, theta);
    for (std::size_t k = 0; k < kSize; ++k) {
      const double g = gradient[k] + kDecay * expected[k];
      mean[k] += 0.1 * (g - mean[k]);
      square[k] += 0.001 * (g * g - square[k]);
      const double unbiased_mean = mean[k] / (1.0 - std::pow(0.9, number));
      const double unbiased_square = square[k] / (1.0 - std::pow(0.999, number));
      expected[k] -= 0.1 * unbiased_mean / (std::sqrt(unbiased_square) + 1e-8);
      EXPECT_NEAR(position[k], expected[k], 1e-11);
      EXPECT_EQ(theta[k], static_cast<float>(position[k]));
    }
  }
}

}  // namespace
}  // namespace olrank
