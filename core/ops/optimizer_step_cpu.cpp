#include <cassert>
#include <cmath>

#include "core/ops/optimizer_step.h"
#include "core/runtime/vector_clones.h"

namespace olrank {
namespace {

using namespace optimizer;  // NOLINT: four constants

// The loops take plain pointers: the clones of a function need all they do in its own body.

OLRANK_VECTOR_CLONES
void gradient_descent_loop(double step, const double* gradient, float* theta, std::size_t size) {
  for (std::size_t k = 0; k < size; ++k)
    theta[k] = static_cast<float>(double{theta[k]} - step * gradient[k]);
}

OLRANK_VECTOR_CLONES
void nesterov_loop(double step, const double* gradient, double* velocity, double* position, float* theta,
                   std::size_t size) {
  for (std::size_t k = 0; k < size; ++k) {
    const double carried = double{theta[k]} - step * gradient[k];
    velocity[k] = carried - position[k];
    position[k] = carried;
    theta[k] = static_cast<float>(carried + kMomentum * velocity[k]);
  }
}

struct AdamScale {
  double step;
  double decay;
  double first;   // 1 − β₁ⁿ
  double second;  // 1 − β₂ⁿ
};

OLRANK_VECTOR_CLONES
void adam_loop(const AdamScale& scale, const double* gradient, double* first, double* second,
               double* position, float* theta, std::size_t size) {
  for (std::size_t k = 0; k < size; ++k) {
    const double slope = gradient[k] + scale.decay * position[k];
    first[k] = kBeta1 * first[k] + (1.0 - kBeta1) * slope;
    second[k] = kBeta2 * second[k] + (1.0 - kBeta2) * slope * slope;
    position[k] -= scale.step * (first[k] / scale.first) / (std::sqrt(second[k] / scale.second) + kEpsilon);
    theta[k] = static_cast<float>(position[k]);
  }
}

}  // namespace

void gradient_descent_step(double step, std::span<const double> gradient, std::span<float> theta) {
  assert(gradient.size() == theta.size());
  gradient_descent_loop(step, gradient.data(), theta.data(), theta.size());
}

void nesterov_step(double step, std::span<const double> gradient, std::span<double> velocity,
                   std::span<double> position, std::span<float> theta) {
  assert(gradient.size() == theta.size() && velocity.size() == theta.size());
  assert(position.size() == theta.size());
  nesterov_loop(step, gradient.data(), velocity.data(), position.data(), theta.data(), theta.size());
}

void adam_step(std::int64_t number, double step, double decay, std::span<const double> gradient,
               AdamMoments moments, std::span<double> position, std::span<float> theta) {
  assert(gradient.size() == theta.size() && position.size() == theta.size());
  assert(moments.first.size() == theta.size() && moments.second.size() == theta.size());
  const AdamScale scale{step, decay, 1.0 - std::pow(kBeta1, static_cast<double>(number)),
                        1.0 - std::pow(kBeta2, static_cast<double>(number))};
  adam_loop(scale, gradient.data(), moments.first.data(), moments.second.data(), position.data(),
            theta.data(), theta.size());
}

}  // namespace olrank
