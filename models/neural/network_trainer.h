#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/interface.h"
#include "core/io/state_archive.h"
#include "core/ops/pair_training.h"
#include "core/ops/relu_network.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "models/neural/document_history.h"
#include "models/neural/training_sample.h"
#include "models/skeleton/network_settings.h"
#include "models/skeleton/width_shadow.h"

namespace olrank {

/// The input of one training.
struct TrainingTask {
  const DocumentHistory& history;
  std::span<const PairTerm> terms;  // with perturbed labels for a member of an ensemble
  bool weigh_by_ndcg = false;       // LambdaRank: terms are weighted again at every step
  std::uint32_t round = 0;
  std::span<const float> centre = {};  // of the prior, sum form; empty: θ₀
};

/// The pairs that a training descends on, in the place of the whole history.
struct SampledPairs {
  const TrainingSample& sample;
  std::span<const PairTerm> terms;  // with perturbed labels for a member of an ensemble
};

/// The input of a training between two on the whole history.
struct ReplayTask {
  const DocumentHistory& history;
  SampledPairs drawn;
  SampledPairs changes;  // of the history in this round
  bool weigh_by_ndcg = false;
  std::uint32_t round = 0;
  std::span<const float> centre = {};  // of the prior; empty: θ₀
};

/// Trains a network's parameters on the history, from where they are.
class NetworkTrainer : public Interface, public Stateful {
 public:
  /// Updates θ and returns the step size, or nothing if steps differ in size. Throws NumericError, with
  /// round, step and loss, if the loss is not finite; θ is then unchanged.
  virtual std::optional<double> train(ExecutionContext& context, const TrainingTask& task,
                                      std::span<float> theta) = 0;
  /// Updates θ on a sample of the history; only where the settings retrain on growth.
  virtual std::optional<double> replay(ExecutionContext& context, const ReplayTask& task,
                                       std::span<float> theta) = 0;
};

struct TrainerSpec {
  const TangentModel& model;  // has to outlive the trainer
  TrainerSettings settings;
  double lambda = 10.0;          // λ
  double prior_weight = 0.0;     // ½mλ of ‖θ − θ₀‖², sum form
  std::span<const float> first;  // θ₀; has to outlive the trainer
  PhiloxKey batch_key;           // of mini-batches
};

/// The sum form trains with full batches, the mean form with mini-batches (docs/MATH.md, "Training").
std::unique_ptr<NetworkTrainer> make_network_trainer(const TrainerSpec& spec);
std::unique_ptr<NetworkTrainer> make_full_batch_trainer(const TrainerSpec& spec);
std::unique_ptr<NetworkTrainer> make_mini_batch_trainer(const TrainerSpec& spec);

bool all_finite(std::span<const float> values);

/// Shuffles the history's observations for an epoch, starting from the order of the previous epoch; before
/// the first epoch that is 0, 1, 2, …
void shuffle_epoch(PhiloxKey batch_key, std::uint32_t round, std::int64_t epoch,
                   std::span<std::int32_t> order);

/// Throws InvalidArgument for an optimizer that needs full batches.
void check_batch_optimizer(const TrainerSettings& settings);

}  // namespace olrank
