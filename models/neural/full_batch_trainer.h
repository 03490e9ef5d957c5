#pragma once

#include "models/neural/network_trainer.h"

namespace olrank {

/// J steps over the whole history on L = Σ cross-entropy + mλ/2 ‖θ − θ₀‖²: docs/MATH.md, "Training". With
/// `gd` and `nesterov` the step is σ_t = η/(κ_t + mλ), where κ_t estimates the largest curvature of the
/// data term; κ_t is recomputed when the history has grown by a tenth, or its documents by far. A training
/// that fails (core/math/step_size.h) is undone and repeated with half the step until it holds.
class FullBatchTrainer : public NetworkTrainer {
 public:
  explicit FullBatchTrainer(const TrainerSpec& spec);

  std::optional<double> train(ExecutionContext& context, const TrainingTask& task,
                              std::span<float> theta) override;
  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  PairObjective objective() const { return {1.0, spec_.prior_weight, spec_.first}; }
  void find_curvature(ExecutionContext& context, const TrainingTask& task, std::span<const float> theta);
  /// σ_t of the `repeats`-th repeat of this training.
  double step_of(int repeats) const;
  /// J steps from θ; the loss before the first.
  double descend(ExecutionContext& context, const TrainingTask& task, double step, std::span<float> theta);
  void start_moments(std::span<const float> theta);
  /// Repeats a descent that failed, checks the loss after each step, restores θ and throws an error that
  /// names the step.
  [[noreturn]] void explain(ExecutionContext& context, const TrainingTask& task, double step, double began,
                            double ended, std::span<float> theta);
  /// Nothing if scores are not finite, so that LambdaRank's weights are undefined.
  std::optional<std::span<const PairTerm>> terms_at(ExecutionContext& context, const TrainingTask& task,
                                                    std::span<const float> theta);
  double loss_at(ExecutionContext& context, const TrainingTask& task, std::span<const float> theta) const;
  void move(std::int64_t number, double step, std::span<float> theta);

  TrainerSpec spec_;

  // State.
  double curvature_ = 0.0;            // κ_t
  std::int64_t curvature_pairs_ = 0;  // n when it was computed
  std::vector<double> eigenvector_;   // where its power iteration stopped
  std::int64_t trainings_ = 0;

  std::vector<double> gradient_;
  std::vector<double> first_moment_;  // of adam; the velocity of nesterov
  std::vector<double> second_moment_;
  std::vector<double> position_;  // θ in double during a nesterov or adam training
  std::vector<float> before_;
  std::vector<float> factors_;
  std::vector<float> scores_;
  std::vector<double> changes_;
  std::vector<PairTerm> weighted_;
};

}  // namespace olrank
