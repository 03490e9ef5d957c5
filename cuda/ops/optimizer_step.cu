#include "cuda/ops/optimizer_step.h"

#include "cuda/ops/optimizer_step.cuh"
#include "cuda/runtime/launch_each.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    begin_training_kernel(std::int64_t numbers, const float* theta, OptimizerState state) {
  const std::int64_t k = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (k >= numbers) return;
  state.position[k] = double{theta[k]};
  state.first_moment[k] = 0.0;
  if (state.second_moment != nullptr) state.second_moment[k] = 0.0;
}

// A thread owns a parameter, blockIdx.y is the member.
__global__ void __launch_bounds__(kThreads)
    gradient_descent_step_kernel(std::int64_t parameters, const double* gradient, const double* step,
                                 float* theta) {
  const std::int64_t k = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (k >= parameters) return;
  const std::int64_t place = blockIdx.y * parameters + k;
  move_by_descent(place, step[blockIdx.y], gradient[place], theta);
}

// The grid is as above; it starts from the position in double.
__global__ void __launch_bounds__(kThreads)
    decayed_step_kernel(std::int64_t parameters, const StepRates* rates, const double* gradient,
                        const double* step, OptimizerState state, float* theta) {
  const std::int64_t k = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (k >= parameters) return;
  const std::int64_t place = blockIdx.y * parameters + k;
  const double moved =
      decayed_element(step[blockIdx.y], rates->decay, gradient[place], state.position[place]);
  state.position[place] = moved;
  theta[place] = static_cast<float>(moved);
}

// The grid is as above; numbers are double.
__global__ void __launch_bounds__(kThreads)
    adam_step_kernel(std::int64_t parameters, const StepRates* rates, const double* gradient,
                     const double* step, OptimizerState state, float* theta) {
  const std::int64_t k = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (k >= parameters) return;
  const std::int64_t place = blockIdx.y * parameters + k;
  move_by_adam(place, step[blockIdx.y], *rates, gradient[place], state, theta);
}

// The grid is as above.
__global__ void __launch_bounds__(kThreads)
    nesterov_step_kernel(std::int64_t parameters, const double* gradient, const double* step,
                         OptimizerState state, float* theta) {
  const std::int64_t k = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (k >= parameters) return;
  const std::int64_t place = blockIdx.y * parameters + k;
  move_by_nesterov(place, step[blockIdx.y], gradient[place], state, theta);
}

}  // namespace

void begin_training(Stream stream, std::int64_t numbers, const float* theta, const OptimizerState& state) {
  launch_each<kThreads>(begin_training_kernel, numbers, 1, stream, numbers, theta, state);
}

void gradient_descent_step(Stream stream, std::int64_t members, std::int64_t parameters,
                           const double* gradient, const double* step, float* theta) {
  launch_each<kThreads>(gradient_descent_step_kernel, parameters, members, stream, parameters, gradient,
                        step, theta);
}

void decayed_step(Stream stream, std::int64_t members, std::int64_t parameters, const StepRates* rates,
                  const double* gradient, const double* step, const OptimizerState& state, float* theta) {
  launch_each<kThreads>(decayed_step_kernel, parameters, members, stream, parameters, rates, gradient, step,
                        state, theta);
}

void adam_step(Stream stream, std::int64_t members, std::int64_t parameters, const StepRates* rates,
               const double* gradient, const double* step, const OptimizerState& state, float* theta) {
  launch_each<kThreads>(adam_step_kernel, parameters, members, stream, parameters, rates, gradient, step,
                        state, theta);
}

void nesterov_step(Stream stream, std::int64_t members, std::int64_t parameters, const double* gradient,
                   const double* step, const OptimizerState& state, float* theta) {
  launch_each<kThreads>(nesterov_step_kernel, parameters, members, stream, parameters, gradient, step,
                        state, theta);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
