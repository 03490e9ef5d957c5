#pragma once

#include <cstdint>

#include "cuda/runtime/stream.h"

// Steps of the optimizers that remember, for N networks side by side; plain gradient descent is part of
// pair_gradients(). Arrays are [members × p], step [members], all on the device.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

struct OptimizerState {
  double* position = nullptr;      // θ in double during one training
  double* first_moment = nullptr;  // of adam; nesterov's velocity
  double* second_moment = nullptr;
};

/// position = θ, moments 0. second_moment may be null.
void begin_training(Stream stream, std::int64_t numbers, const float* theta, const OptimizerState& state);

/// Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015; `number` counts steps from 1.
void adam_step(Stream stream, std::int64_t members, std::int64_t parameters, std::int64_t number,
               const double* gradient, const double* step, const OptimizerState& state, float* theta);

/// Nesterov's momentum, 0.9; θ is the point ahead, where the next gradient is taken.
void nesterov_step(Stream stream, std::int64_t members, std::int64_t parameters, const double* gradient,
                   const double* step, const OptimizerState& state, float* theta);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
