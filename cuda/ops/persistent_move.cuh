#pragma once

#include <cstdint>

#include "cuda/ops/optimizer_step.cuh"
#include "cuda/ops/persistent_room.cuh"

// The persistent training kernel does this across parts of the documents: whole gradients and the moves by
// them, and losses.
namespace olrank::OLRANK_DEVICE_NAMESPACE::persistent {

/// Takes one step of a parameter.
__device__ inline void move(const PersistentTraining& training, std::int64_t place, std::int64_t number,
                            double step, double gradient) {
  if (step == 0.0) return;
  switch (training.optimizer) {
    case Optimizer::kGradientDescent:
      move_by_descent(place, step, gradient, training.theta);
      return;
    case Optimizer::kNesterov:
      move_by_nesterov(place, step, gradient, training.state, training.theta);
      return;
    case Optimizer::kAdam:
      move_by_adam(place, step, training.rates[number], gradient, training.state, training.theta);
      return;
  }
}

/// Moves a parameter, or keeps its gradient if that is all that is wanted.
__device__ inline void use_gradient(const Task& task, std::int64_t place, std::int64_t number, double step,
                                    double of_data) {
  const PersistentTraining& training = task.training;
  const double gradient = training.objective.data_scale * of_data +
                          slope_of_parameter(training.objective, place, double{training.theta[place]});
  if (training.gradient != nullptr) {
    training.gradient[place] = gradient;
  } else {
    move(training, place, number, step, gradient);
  }
}

/// The bias of the output, by the first warp.
__device__ inline void use_output_bias(const Task& task, std::int64_t member, std::int64_t number,
                                       const Room& room) {
  if (threadIdx.x >= 32) return;
  double sum = 0.0;
  for (std::int64_t part = threadIdx.x; part < task.parts.parts; part += 32)
    sum += double{task.partial_of(member, part)[task.units() * 4 * task.quads()]};
  sum = warp_sum(sum);
  if (threadIdx.x != 0) return;
  const std::int64_t place = member * task.output.parameters + task.output.layer.bias;
  use_gradient(task, place, number, room.steps[member], sum);
}

/// The gradient of a hidden unit's weights and of the weight w that the output gives it, in double. With U
/// the sum of the outer products, parts in order: ∂W = w U and ∂w = Σ_doc δ_L h = W·U, as h = W·x where the
/// unit is active.
__device__ inline void use_row(const Task& task, std::int64_t member, int unit, std::int64_t number,
                               const Room& room) {
  const int quads = task.quads();
  const int columns = task.parts.columns;
  const int groups = max(1, kThreads / quads);
  const float* partial = task.partial_of(member, 0) + std::int64_t{unit} * 4 * quads;
  for (int cell = static_cast<int>(threadIdx.x); cell < groups * quads; cell += kThreads) {
    const int group = cell / quads;
    const float* numbers = partial + cell % quads * 4;
    double sum[4] = {};
#pragma unroll 8
    for (std::int64_t part = group; part < task.parts.parts; part += groups) {
      const auto four = *reinterpret_cast<const FloatGroup<4>*>(numbers + part * task.partial_size());
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[e] += double{four.value[e]};
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) room.row[group * 4 * quads + cell % quads * 4 + e] = sum[e];
  }
  const std::int64_t first = member * task.output.parameters;
  const std::int64_t output_place = first + task.output.layer.weight + unit;
  const double output_weight{task.training.theta[output_place]};
  const double step = room.steps[member];
  __syncthreads();
  double product = 0.0;
  for (int column = static_cast<int>(threadIdx.x); column < columns; column += kThreads) {
    double sum = 0.0;
    for (int group = 0; group < groups; ++group) sum += room.row[group * 4 * quads + column];
    const bool is_bias = column == task.inputs();
    const std::int64_t place =
        first + (is_bias ? task.hidden.bias + unit
                         : task.hidden.weight + std::int64_t{unit} * task.inputs() + column);
    product += double{task.training.theta[place]} * sum;
    use_gradient(task, place, number, step, output_weight * sum);
  }
  product = block_sum(product, room.warps);
  if (threadIdx.x == 0) use_gradient(task, output_place, number, step, product);
  __syncthreads();
}

__device__ inline void sum_losses(const Task& task, const Room& room) {
  const PersistentTraining& training = task.training;
  const LossBlocks& blocks = task.loss_blocks;
  for (std::int64_t i = blockIdx.x; i < task.members() * blocks.all; i += gridDim.x) {
    const double sum =
        loss_sum(training.history, training.workspace.scores, training.theta, task.output.parameters,
                 training.objective, blocks, i / blocks.all, i % blocks.all, room.warps);
    if (threadIdx.x == 0) training.workspace.losses[i] = sum;
    __syncthreads();
  }
}

/// The last block does this, as it has the fewest rows.
__device__ inline void finish_losses(const Task& task, double* losses) {
  if (blockIdx.x != gridDim.x - 1) return;
  const LossBlocks& blocks = task.loss_blocks;
  for (std::int64_t member = threadIdx.x; member < task.members(); member += kThreads)
    losses[member] =
        loss_of_sums(blocks, task.training.workspace.losses + member * blocks.all, task.training.objective);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE::persistent
