#pragma once

#include <cstdint>

#include "core/math/optimizer_step.h"
#include "cuda/runtime/stream.h"

// Steps of optimizers for N networks side by side. Arrays are [members × p], step [members], all on the
// device. A member whose step is 0 stays where it is.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

struct OptimizerState {
  double* position = nullptr;      // θ in double during one training
  double* first_moment = nullptr;  // of adam; nesterov's velocity
  double* second_moment = nullptr;
};

/// position = θ, moments 0. second_moment may be null.
void begin_training(Stream stream, std::int64_t numbers, const float* theta, const OptimizerState& state);

/// Sets the step of every member to 0 whose gradient has a norm of at most `norm_per_pair` times `observed`
/// pairs, a number on the device.
void stop_at_small_gradients(Stream stream, std::int64_t members, std::int64_t parameters,
                             const double* gradient, double norm_per_pair, const std::int64_t* observed,
                             double* step);

/// θ ← θ − step · gradient. Where nothing has to happen between, pair_gradients() does it in its last pass.
void gradient_descent_step(Stream stream, std::int64_t members, std::int64_t parameters,
                           const double* gradient, const double* step, float* theta);

/// The same from `position`, with gradient + decay · position. The rates are one for all, on the device.
void decayed_step(Stream stream, std::int64_t members, std::int64_t parameters, const StepRates* rates,
                  const double* gradient, const double* step, const OptimizerState& state, float* theta);

/// Adam on gradient + decay · position.
void adam_step(Stream stream, std::int64_t members, std::int64_t parameters, const StepRates* rates,
               const double* gradient, const double* step, const OptimizerState& state, float* theta);

/// Nesterov's momentum; θ is the point ahead, where the next gradient is taken.
void nesterov_step(Stream stream, std::int64_t members, std::int64_t parameters, const double* gradient,
                   const double* step, const OptimizerState& state, float* theta);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
