#pragma once

#include "models/neural/network_trainer.h"

namespace olrank {

/// J steps over the whole history on L = Σ cross-entropy + mλ/2 ‖θ − c‖²: docs/MATH.md, "Training". With
/// `gd` and `nesterov` the step is σ_t = η/(κ_t + mλ), where κ_t estimates the largest curvature of the
/// data term; κ_t is recomputed when the history has grown by a tenth, or its documents by far. A training
/// that fails (core/math/optimizer_step.h) is undone and repeated with half the step until it holds.
///
/// Between two such trainings replay() descends on a sample, whose gradient is corrected by the known one
/// of the whole history at the latest training's result.
class FullBatchTrainer : public NetworkTrainer {
 public:
  explicit FullBatchTrainer(const TrainerSpec& spec);

  std::optional<double> train(ExecutionContext& context, const TrainingTask& task,
                              std::span<float> theta) override;
  std::optional<double> replay(ExecutionContext& context, const ReplayTask& task,
                               std::span<float> theta) override;
  void fields(StateFields& state) override;

 private:
  /// One training descends on such a problem.
  struct Problem {
    FeatureMatrix docs;
    std::span<const PairTerm> terms;
    std::span<const PairTerm> curvature_terms;  // without perturbed labels
    std::span<const float> centre;              // of the prior
    std::span<const double> linear;             // h of the objective
    Optimizer optimizer = Optimizer::kGradientDescent;
    bool weigh_by_ndcg = false;
    PairLists lists;                 // for weigh_by_ndcg
    std::span<const double> scales;  // of their pairs; empty: 1
    std::int64_t observed = 0;       // n
    std::int64_t steps = 0;
    std::uint32_t round = 0;
  };

  static Problem problem_of(const SampledPairs& pairs, bool weigh_by_ndcg);
  PairObjective objective(const Problem& problem) const {
    return {1.0, spec_.prior_weight, problem.centre, problem.linear};
  }
  bool by_curvature() const { return spec_.settings.optimizer != Optimizer::kAdam; }
  bool replays() const { return spec_.settings.retraining().replays(); }
  double find_curvature(ExecutionContext& context, const Problem& problem, std::span<const float> theta);
  /// σ_t of the `repeats`-th repeat of this training, from this κ_t.
  double step_of(int repeats, double curvature) const;
  /// Trains on a problem, with the rule for failures, and returns σ_t. A repeat may find κ_t again.
  double descend_safely(ExecutionContext& context, const Problem& problem, double& curvature,
                        std::span<float> theta);
  /// Steps from θ; the loss before the first.
  double descend(ExecutionContext& context, const Problem& problem, double step, std::span<float> theta);
  void start_moments(std::span<const float> theta);
  /// Repeats a descent that failed, checks the loss after each step, restores θ and throws an error that
  /// names the step.
  [[noreturn]] void explain(ExecutionContext& context, const Problem& problem, double step, double began,
                            double ended, std::span<float> theta);
  /// Nothing if scores are not finite, so that LambdaRank's weights are undefined.
  std::optional<std::span<const PairTerm>> terms_at(ExecutionContext& context, const Problem& problem,
                                                    std::span<const float> theta);
  double loss_at(ExecutionContext& context, const Problem& problem, std::span<const float> theta);
  /// gradient_ = that of the loss; returns the loss if asked to.
  double find_gradient(ExecutionContext& context, const Problem& problem, std::span<const PairTerm> terms,
                       std::span<const float> theta, bool with_loss);
  /// gradient_ = that of the data at the reference; false if it is not finite.
  bool find_reference_gradient(ExecutionContext& context, const Problem& problem);
  void move(const Problem& problem, std::int64_t number, double step, std::span<float> theta);

  TrainerSpec spec_;

  // State.
  double curvature_ = 0.0;            // κ_t
  std::int64_t curvature_pairs_ = 0;  // n when it was computed
  std::vector<double> eigenvector_;   // where its power iteration stopped
  std::int64_t trainings_ = 0;
  std::vector<float> reference_;            // θ after the latest training on the whole history
  std::vector<double> reference_gradient_;  // of the data there, of the history as it is now

  std::vector<double> gradient_;
  std::vector<double> linear_;
  std::vector<double> first_moment_;  // of adam; the velocity of nesterov
  std::vector<double> second_moment_;
  std::vector<double> position_;  // θ in double during a nesterov or adam training
  std::vector<float> before_;
  std::vector<float> scores_;
  std::vector<double> changes_;
  std::vector<PairTerm> weighted_;
};

}  // namespace olrank
