#include "core/ops/optimizer_step.h"

#include <cassert>

#include "core/math/any_cpu.h"
#include "core/math/host_device.h"
#include "core/math/optimizer_step.h"

namespace olrank {
namespace {

// The loops take plain pointers: compilers vectorise the clones of a function only by its own body.

OLRANK_VECTOR_CLONES
void gradient_descent_loop(double step, const double* gradient, float* theta, std::size_t size) {
  for (std::size_t k = 0; k < size; ++k)
    theta[k] = static_cast<float>(gradient_descent_element(step, gradient[k], double{theta[k]}));
}

OLRANK_VECTOR_CLONES
void decayed_loop(double step, double decay, const double* gradient, double* position, float* theta,
                  std::size_t size) {
  for (std::size_t k = 0; k < size; ++k) {
    position[k] = decayed_element(step, decay, gradient[k], position[k]);
    theta[k] = static_cast<float>(position[k]);
  }
}

OLRANK_VECTOR_CLONES
void nesterov_loop(double step, const double* gradient, double* velocity, double* position, float* theta,
                   std::size_t size) {
  for (std::size_t k = 0; k < size; ++k) {
    const NesterovElement next = nesterov_element(step, gradient[k], position[k], double{theta[k]});
    velocity[k] = next.velocity;
    position[k] = next.position;
    theta[k] = static_cast<float>(next.theta);
  }
}

OLRANK_VECTOR_CLONES
void adam_loop(double step, const StepRates& rates, const double* gradient, double* first, double* second,
               double* position, float* theta, std::size_t size) {
  for (std::size_t k = 0; k < size; ++k) {
    const AdamElement next = adam_element(step, rates, gradient[k], {first[k], second[k], position[k]});
    first[k] = next.first;
    second[k] = next.second;
    position[k] = next.position;
    theta[k] = static_cast<float>(next.position);
  }
}

}  // namespace

void gradient_descent_step(double step, std::span<const double> gradient, std::span<float> theta) {
  assert(gradient.size() == theta.size());
  gradient_descent_loop(step, gradient.data(), theta.data(), theta.size());
}

void decayed_step(double step, double decay, std::span<const double> gradient, std::span<double> position,
                  std::span<float> theta) {
  assert(gradient.size() == theta.size() && position.size() == theta.size());
  decayed_loop(step, decay, gradient.data(), position.data(), theta.data(), theta.size());
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
  const StepRates rates{1.0 - power_of(optimizer::kBeta1, number),
                        1.0 - power_of(optimizer::kBeta2, number), decay};
  adam_loop(step, rates, gradient.data(), moments.first.data(), moments.second.data(), position.data(),
            theta.data(), theta.size());
}

}  // namespace olrank
