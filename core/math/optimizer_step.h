#pragma once

#include <cmath>
#include <cstdint>

#include "core/math/host_device.h"

// One parameter's step of each optimizer, in double.
namespace olrank {

namespace optimizer {
constexpr double kMomentum = 0.9;  // Nesterov's
constexpr double kBeta1 = 0.9;     // Adam's
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;
}  // namespace optimizer

/// θ − step · gradient.
OLRANK_HOST_DEVICE inline double gradient_descent_element(double step, double gradient, double theta) {
  return theta - step * gradient;
}

/// Gradient descent with weight decay.
OLRANK_HOST_DEVICE inline double decayed_element(double step, double decay, double gradient,
                                                 double position) {
  return position - step * (gradient + decay * position);
}

/// Nesterov's momentum. θ is the point ahead of `position`, where the gradient is taken.
struct NesterovElement {
  double velocity;
  double position;
  double theta;
};

OLRANK_HOST_DEVICE inline NesterovElement nesterov_element(double step, double gradient, double position,
                                                           double theta) {
  const double moved = gradient_descent_element(step, gradient, theta);
  const double velocity = moved - position;
  return {velocity, moved, moved + optimizer::kMomentum * velocity};
}

/// The n-th step takes these rates in addition to the gradient. The corrections are Adam's.
struct StepRates {
  double first_correction = 1.0;   // 1 − β₁ⁿ
  double second_correction = 1.0;  // 1 − β₂ⁿ
  double decay = 0.0;              // of the position; decay · position is added to the gradient
};

/// Steps are numbered from 1.
inline StepRates step_rates(std::int64_t number, double decay) {
  const auto power = static_cast<double>(number);
  return {1.0 - std::pow(optimizer::kBeta1, power), 1.0 - std::pow(optimizer::kBeta2, power), decay};
}

/// Running means of a gradient and of its square, and θ in double.
struct AdamElement {
  double first;
  double second;
  double position;
};

/// Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, Algorithm 1.
OLRANK_HOST_DEVICE inline AdamElement adam_element(double step, const StepRates& rates, double gradient,
                                                   const AdamElement& before) {
  const double slope = gradient + rates.decay * before.position;
  const double first = optimizer::kBeta1 * before.first + (1.0 - optimizer::kBeta1) * slope;
  const double second = optimizer::kBeta2 * before.second + (1.0 - optimizer::kBeta2) * slope * slope;
  const double scale = std::sqrt(second / rates.second_correction) + optimizer::kEpsilon;
  const double moved = before.position - step * (first / rates.first_correction) / scale;
  return {first, second, moved};
}

}  // namespace olrank
