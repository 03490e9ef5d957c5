#pragma once

#include <cstdint>

#include "core/math/optimizer_step.h"
#include "core/ops/pair_training.h"
#include "cuda/ops/pair_training.h"

// Kernels for trainings on a sample of the history; its passes are those of cuda/ops/pair_training.h. All
// arrays are on the device.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Weights and labels of a sample's terms, [members × count] each: of the round's own pairs, and of own and
/// drawn ones together.
struct SampleParts {
  double* own_weights = nullptr;
  double* own_labels = nullptr;
  double* weights = nullptr;
  double* labels = nullptr;
};

/// Terms whose number is −1 get zeros. With noise ν > 0, labels are those of noisy_sampled_labels(), with
/// the CPU's draws and bits; keys [members] and the round of the noise are on the device.
void split_sample(Stream stream, const SampledTerm* sources, std::int64_t count, std::int64_t members,
                  const PhiloxKey* keys, const std::uint32_t* noise_round, double noise,
                  const SampleParts& parts);

/// sum [members × p] += gradient, of members whose gradient is finite: a document whose scores overflow
/// stays out, so that later rounds can train.
void add_finite_gradient(Stream stream, std::int64_t members, std::int64_t parameters,
                         const double* gradient, double* sum);

/// gradient = whole − gradient [members × p]: h, which makes a sample's gradient that of the whole history
/// at the reference. 0 for members whose gradient is not finite.
void subtract_from_whole(Stream stream, std::int64_t members, std::int64_t parameters, const double* whole,
                         double* gradient);

// Batches of observed pairs. Pair i has its own documents, rows 2i and 2i + 1, so that the incidence of
// terms and documents is the same in every batch. All arrays are on the device.

/// The history that batches are drawn from.
struct BatchSource {
  const float* features = nullptr;  // [docs × d]
  std::int64_t columns = 0;         // d
  const PairTerm* terms = nullptr;
  const PairObservation* observations = nullptr;
  const double* labels = nullptr;   // [members × terms], with noise; may be null
  const double* changes = nullptr;  // [members × observations], weights; null: 1 each
  std::int64_t terms_count = 0;
  std::int64_t observation_count = 0;
};

/// A member's position in its training. It is stored and advanced on the device, so that the work of a
/// batch can be recorded once.
struct BatchCursor {
  const std::int32_t* order = nullptr;  // observation numbers of this batch and later ones
  std::int64_t number = 1;              // of this batch
  StepRates rates;                      // of its step
};

/// The first loss of each member's training that is not finite or has exploded, in doubles on the device:
/// the number of its step, or 0 if there is none yet, and the loss.
struct BadLoss {
  double* number = nullptr;  // [members]
  double* loss = nullptr;    // [members]
};

/// Sets cursors [members] for orders stored one after another, `per_member` numbers each.
void begin_batches(Stream stream, std::int64_t members, const std::int32_t* order, std::int64_t per_member,
                   const StepRates& rates, BatchCursor* cursors);

/// Records losses [members] that have exploded and advances the cursors by `count` observations.
/// corrections [steps + 1] are the rates of all steps of a training; their decay is ignored.
void finish_batch(Stream stream, std::int64_t members, std::int64_t count, const double* losses,
                  const StepRates* corrections, BatchCursor* cursors, const BadLoss& bad);

/// The incidence of a batch of up to `pairs`.
void fill_batch_incidence(Stream stream, std::int64_t pairs, const PairIncidence& incidence);

/// features [members × 2 count × d] and terms [members × count] of each member's next `count` observations.
void gather_batch(Stream stream, const BatchSource& source, std::int64_t members,
                  const BatchCursor* cursors, std::int64_t count, float* features, PairTerm* terms);

/// Records NaN as the loss of this batch for members of whose scores [members × docs] one is not finite.
void note_bad_scores(Stream stream, std::int64_t members, const BatchCursor* cursors, std::int64_t docs,
                     const float* scores, const BadLoss& bad);

// The device version of core/ops/optimizer_step.h, for N networks side by side. Arrays are [members × p],
// step [members], all on the device. A member whose step is 0 does not move.

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

// One parameter's step, for the kernels that move parameters. Arrays are those of all members.

OLRANK_HOST_DEVICE inline void move_by_descent(std::int64_t place, double step, double gradient,
                                               float* theta) {
  theta[place] = static_cast<float>(gradient_descent_element(step, gradient, double{theta[place]}));
}

OLRANK_HOST_DEVICE inline void move_by_adam(std::int64_t place, double step, const StepRates& rates,
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
OLRANK_HOST_DEVICE inline void move_by_nesterov(std::int64_t place, double step, double gradient,
                                                const OptimizerState& state, float* theta) {
  if (step == 0.0) return;
  const NesterovElement next =
      nesterov_element(step, gradient, state.position[place], double{theta[place]});
  state.first_moment[place] = next.velocity;
  state.position[place] = next.position;
  theta[place] = static_cast<float>(next.theta);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
