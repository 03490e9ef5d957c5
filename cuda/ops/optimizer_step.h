#pragma once

#include <cstdint>

#include "core/math/optimizer_step.h"
#include "cuda/runtime/stream.h"

// The device version of core/ops/optimizer_step.h, for N networks side by side. Arrays are [members × p],
// step [members], all on the device. A member whose step is 0 does not move.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

struct OptimizerState {
  double* position = nullptr;      // θ in double during one training
  double* first_moment = nullptr;  // Adam's; Nesterov's velocity
  double* second_moment = nullptr;
};

/// position = θ, moments 0. second_moment may be null.
void begin_training(Stream stream, std::int64_t numbers, const float* theta, const OptimizerState& state);

enum class Step {
  kDescent,   // θ ← θ − step · gradient; pair_gradients() can do this in its last pass
  kDecayed,   // from `position`, with gradient + decay · position
  kAdam,      // on gradient + decay · position
  kNesterov,  // θ is the point ahead, where the next gradient is taken
};

/// Moves θ. All members share the rates, those of Adam and decayed steps, which are on the device.
void optimizer_step(Stream stream, Step kind, std::int64_t members, std::int64_t parameters,
                    const StepRates* rates, const double* gradient, const double* step,
                    const OptimizerState& state, float* theta);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
