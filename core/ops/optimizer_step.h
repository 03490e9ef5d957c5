#pragma once

#include <cstdint>
#include <span>

namespace olrank {

enum class Optimizer { kGradientDescent, kNesterov, kAdam };

/// Of every optimizer here, on the CPU and on a device.
namespace optimizer {
constexpr double kMomentum = 0.9;  // Nesterov's
constexpr double kBeta1 = 0.9;     // Adam's
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;
}  // namespace optimizer

/// θ ← θ − step · gradient, each difference in double.
void gradient_descent_step(double step, std::span<const double> gradient, std::span<float> theta);

/// Nesterov's momentum: `position` is where the velocity has carried, θ the point ahead of it, where the
/// next gradient is taken. Both start at θ, the velocity at 0.
void nesterov_step(double step, std::span<const double> gradient, std::span<double> velocity,
                   std::span<double> position, std::span<float> theta);

/// Running means of a gradient and of its square.
struct AdamMoments {
  std::span<double> first;
  std::span<double> second;
};

/// Step `number` (from 1) of Adam on gradient + decay · position (Kingma and Ba, "Adam: a method for
/// stochastic optimization", ICLR 2015); `position` is θ in double.
void adam_step(std::int64_t number, double step, double decay, std::span<const double> gradient,
               AdamMoments moments, std::span<double> position, std::span<float> theta);

}  // namespace olrank
