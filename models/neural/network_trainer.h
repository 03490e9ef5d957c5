#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/io/state_archive.h"
#include "core/ops/pair_training.h"
#include "core/ops/relu_network.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "models/neural/document_history.h"
#include "models/trainer_settings.h"

namespace olrank {

/// What one training is about.
struct TrainingTask {
  const DocumentHistory& history;
  std::span<const PairTerm> terms;  // with perturbed labels for a member of an ensemble
  bool weigh_by_ndcg = false;       // LambdaRank: terms are weighed anew at every step
  std::uint32_t round = 0;
};

/// How a network's parameters follow the history. Training starts from θ as it stands, or from θ₀.
class NetworkTrainer {
 public:
  NetworkTrainer() = default;
  virtual ~NetworkTrainer() = default;
  NetworkTrainer(const NetworkTrainer&) = delete;
  NetworkTrainer& operator=(const NetworkTrainer&) = delete;

  /// Moves θ and returns the size of its steps, none where they have no common one. Throws NumericError,
  /// with round, step and loss, when the loss leaves the finite numbers; θ then stays as it was.
  virtual std::optional<double> train(ExecutionContext& context, const TrainingTask& task,
                                      std::span<float> theta) = 0;

  virtual void save(StateWriter& state) const = 0;
  virtual void load(StateReader& state) = 0;
};

struct TrainerSpec {
  NetworkShape shape;
  TrainerSettings settings;
  double lambda = 10.0;          // λ
  double prior_scale = 1.0;      // m in mλ/2 ‖θ − θ₀‖², sum form
  std::span<const float> first;  // θ₀; has to outlive the trainer
  PhiloxKey batch_key;           // of mini-batches
};

/// The sum form trains by full batches from the parameters as they stand, the mean form by mini-batches
/// from θ₀ (docs/MATH.md, "Training").
std::unique_ptr<NetworkTrainer> make_network_trainer(const TrainerSpec& spec);

bool all_finite(std::span<const float> values);

}  // namespace olrank
