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

// A thread owns a parameter, grid.block.y is the member. Numbers are double.
__device__ void step_kernel(const Grid& grid, const Step& kind, std::int64_t parameters,
                            const StepRates* rates, const double* gradient, const double* step,
                            const OptimizerState& state, float* theta) {
  const std::int64_t k = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (k >= parameters) return;
  const std::int64_t place = grid.block.y * parameters + k;
  const double size = step[grid.block.y];
  if (kind == Step::kAdam) {
    move_by_adam(place, size, *rates, gradient[place], state, theta);
  } else if (kind == Step::kNesterov) {
    move_by_nesterov(place, size, gradient[place], state, theta);
  } else if (kind == Step::kDescent) {
    move_by_descent(place, size, gradient[place], theta);
  } else {
    const double moved = decayed_element(size, rates->decay, gradient[place], state.position[place]);
    state.position[place] = moved;
    theta[place] = static_cast<float>(moved);
  }
}

}  // namespace

void begin_training(Stream stream, std::int64_t numbers, const float* theta, const OptimizerState& state) {
  launch_each(kernel<begin_training_kernel, kThreads>, numbers, 1, stream, numbers, theta, state);
}

void optimizer_step(Stream stream, Step kind, std::int64_t members, std::int64_t parameters,
                    const StepRates* rates, const double* gradient, const double* step,
                    const OptimizerState& state, float* theta) {
  launch_each(kernel<step_kernel, kThreads>, parameters, members, stream, kind, parameters, rates, gradient,
              step, state, theta);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
