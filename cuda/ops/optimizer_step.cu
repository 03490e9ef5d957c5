#include "cuda/ops/optimizer_step.h"

#include "cuda/ops/optimizer_step.cuh"
#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 256;

__device__ void begin_training_kernel(const Grid& grid, std::int64_t numbers, const float* theta,
                                      const OptimizerState& state) {
  const std::int64_t k = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (k >= numbers) return;
  state.position[k] = double{theta[k]};
  state.first_moment[k] = 0.0;
  if (state.second_moment != nullptr) state.second_moment[k] = 0.0;
}

// A thread owns a parameter, grid.block.y is the member.
__device__ void gradient_descent_step_kernel(const Grid& grid, std::int64_t parameters,
                                             const double* gradient, const double* step, float* theta) {
  const std::int64_t k = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (k >= parameters) return;
  const std::int64_t place = grid.block.y * parameters + k;
  move_by_descent(place, step[grid.block.y], gradient[place], theta);
}

// The grid is as above; it starts from the position in double.
__device__ void decayed_step_kernel(const Grid& grid, std::int64_t parameters, const StepRates* rates,
                                    const double* gradient, const double* step, const OptimizerState& state,
                                    float* theta) {
  const std::int64_t k = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (k >= parameters) return;
  const std::int64_t place = grid.block.y * parameters + k;
  const double moved =
      decayed_element(step[grid.block.y], rates->decay, gradient[place], state.position[place]);
  state.position[place] = moved;
  theta[place] = static_cast<float>(moved);
}

// The grid is as above; numbers are double.
__device__ void adam_step_kernel(const Grid& grid, std::int64_t parameters, const StepRates* rates,
                                 const double* gradient, const double* step, const OptimizerState& state,
                                 float* theta) {
  const std::int64_t k = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (k >= parameters) return;
  const std::int64_t place = grid.block.y * parameters + k;
  move_by_adam(place, step[grid.block.y], *rates, gradient[place], state, theta);
}

// The grid is as above.
__device__ void nesterov_step_kernel(const Grid& grid, std::int64_t parameters, const double* gradient,
                                     const double* step, const OptimizerState& state, float* theta) {
  const std::int64_t k = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (k >= parameters) return;
  const std::int64_t place = grid.block.y * parameters + k;
  move_by_nesterov(place, step[grid.block.y], gradient[place], state, theta);
}

}  // namespace

void begin_training(Stream stream, std::int64_t numbers, const float* theta, const OptimizerState& state) {
  launch_each<kThreads>(kernel<begin_training_kernel, kThreads>, numbers, 1, stream, numbers, theta, state);
}

void gradient_descent_step(Stream stream, std::int64_t members, std::int64_t parameters,
                           const double* gradient, const double* step, float* theta) {
  launch_each<kThreads>(kernel<gradient_descent_step_kernel, kThreads>, parameters, members, stream,
                        parameters, gradient, step, theta);
}

void decayed_step(Stream stream, std::int64_t members, std::int64_t parameters, const StepRates* rates,
                  const double* gradient, const double* step, const OptimizerState& state, float* theta) {
  launch_each<kThreads>(kernel<decayed_step_kernel, kThreads>, parameters, members, stream, parameters,
                        rates, gradient, step, state, theta);
}

void adam_step(Stream stream, std::int64_t members, std::int64_t parameters, const StepRates* rates,
               const double* gradient, const double* step, const OptimizerState& state, float* theta) {
  launch_each<kThreads>(kernel<adam_step_kernel, kThreads>, parameters, members, stream, parameters, rates,
                        gradient, step, state, theta);
}

void nesterov_step(Stream stream, std::int64_t members, std::int64_t parameters, const double* gradient,
                   const double* step, const OptimizerState& state, float* theta) {
  launch_each<kThreads>(kernel<nesterov_step_kernel, kThreads>, parameters, members, stream, parameters,
                        gradient, step, state, theta);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
