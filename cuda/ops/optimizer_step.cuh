#pragma once

#include <cstdint>

#include "cuda/ops/optimizer_step.h"
#include "cuda/runtime/grid.cuh"

// One parameter's step, of the kernels that move parameters. Arrays are those of all members.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

__device__ inline void move_by_descent(std::int64_t place, double step, double gradient, float* theta) {
  theta[place] = static_cast<float>(gradient_descent_element(step, gradient, double{theta[place]}));
}

__device__ inline void move_by_adam(std::int64_t place, double step, const StepRates& rates,
                                    double gradient, const OptimizerState& state, float* theta) {
  if (step == 0.0) return;
  const AdamElement next =
      adam_element(step, rates, gradient,
                   {state.first_moment[place], state.second_moment[place], state.position[place]});
  state.first_moment[place] = next.first;
  state.second_moment[place] = next.second;
  state.position[place] = next.position;
  theta[place] = static_cast<float>(next.position);
}

/// θ is the point ahead of `position`.
__device__ inline void move_by_nesterov(std::int64_t place, double step, double gradient,
                                        const OptimizerState& state, float* theta) {
  if (step == 0.0) return;
  const NesterovElement next =
      nesterov_element(step, gradient, state.position[place], double{theta[place]});
  state.first_moment[place] = next.velocity;
  state.position[place] = next.position;
  theta[place] = static_cast<float>(next.theta);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
