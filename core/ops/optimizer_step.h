#pragma once

#include <cstdint>
#include <iterator>
#include <span>

namespace olrank {

enum class Optimizer { kGradientDescent, kNesterov, kAdam };

/// θ ← θ − step · gradient, each difference in double.
void gradient_descent_step(double step, std::span<const double> gradient, std::span<float> theta);

/// Steps from `position`, which is θ in double, with gradient + decay · position.
void decayed_step(double step, double decay, std::span<const double> gradient, std::span<double> position,
                  std::span<float> theta);

/// Nesterov's momentum: θ is the point ahead of `position`, where the next gradient is taken. Both start at
/// θ, the velocity at 0.
void nesterov_step(double step, std::span<const double> gradient, std::span<double> velocity,
                   std::span<double> position, std::span<float> theta);

/// Running means of a gradient and of its square.
struct AdamMoments {
  std::span<double> first;
  std::span<double> second;
};

/// Where Adam is: θ, θ in double, and the moments.
struct AdamState {
  std::span<float> theta;
  std::span<double> position;
  AdamMoments moments;
};

/// One pass of Adam over queries in this order, `batch` of them a step.
struct AdamPass {
  std::span<const std::int64_t> order;
  std::int64_t batch = 1;
  std::int64_t steps_before = 0;  // of earlier passes
  double step = 0.0;
  double decay = 0.0;

  std::int64_t steps() const { return order.empty() ? 0 : (std::ssize(order) - 1) / batch + 1; }
};

/// Step `number` (from 1) of Adam on gradient + decay · position; `position` is θ in double.
void adam_step(std::int64_t number, double step, double decay, std::span<const double> gradient,
               AdamMoments moments, std::span<double> position, std::span<float> theta);

/// Steps on a sample of the history descend with this optimizer. Momentum would carry J gradients of the
/// same few pairs three times as far as plain steps do (12.1 instead of 4 step sizes for J = 4). The error
/// that a sample leaves grows with that distance; beyond what the history's curvature takes back, it adds
/// up from round to round. Adam's step does not grow with the gradient.
inline Optimizer optimizer_of_replay(Optimizer optimizer) {
  return optimizer == Optimizer::kNesterov ? Optimizer::kGradientDescent : optimizer;
}

}  // namespace olrank
