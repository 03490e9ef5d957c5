#pragma once

#include "models/neural/gathered_docs.h"
#include "models/neural/network_trainer.h"

namespace olrank {

/// Shuffles the history's observations for an epoch, starting from the order of the previous epoch; before
/// the first epoch that is 0, 1, 2, …
void shuffle_epoch(PhiloxKey batch_key, std::uint32_t round, std::int64_t epoch,
                   std::span<std::int32_t> order);

/// Throws InvalidArgument for an optimizer that needs full batches.
void check_batch_optimizer(const TrainerSettings& settings);

/// The training of the authors' code (docs/MATH.md, "Protocols"): each update passes over the history
/// `epochs` times in shuffled batches, on the batch's mean cross-entropy with weight decay λ/n. `adam`, or
/// plain steps with `gd`.
class MiniBatchTrainer : public NetworkTrainer {
 public:
  explicit MiniBatchTrainer(const TrainerSpec& spec);

  std::optional<double> train(ExecutionContext& context, const TrainingTask& task,
                              std::span<float> theta) override;
  /// Batches go over every pair, so there is nothing to continue on a sample.
  std::optional<double> replay(ExecutionContext&, const ReplayTask&, std::span<float>) override {
    return std::nullopt;
  }

 private:
  void gather(const TrainingTask& task, std::span<const std::int32_t> batch);
  /// The first batch whose loss has exploded.
  struct Failure {
    std::int64_t step = 0;  // from 1
    double loss = 0.0;
  };
  /// One training from where the latest began.
  std::optional<Failure> pass_epochs(ExecutionContext& context, const TrainingTask& task, double step,
                                     std::span<float> theta);
  void move(std::int64_t number, double step, double decay, std::span<float> theta);

  TrainerSpec spec_;
  std::vector<double> gradient_;
  std::vector<double> first_moment_;
  std::vector<double> second_moment_;
  std::vector<double> position_;  // θ in double
  std::vector<float> before_;
  std::vector<std::int32_t> order_;
  std::vector<float> scores_;
  std::vector<double> changes_;
  std::vector<double> term_noise_;  // of perturbed labels, per observation

  // The batch: its distinct documents and terms.
  GatheredDocs docs_;
  std::vector<PairTerm> terms_;
};

}  // namespace olrank
