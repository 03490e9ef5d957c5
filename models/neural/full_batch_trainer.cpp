#include <algorithm>
#include <cmath>
#include <vector>

#include "core/math/any_cpu.h"
#include "core/math/optimizer_step.h"
#include "core/math/portable_exp.h"
#include "core/online/retraining.h"
#include "core/ops/optimizer_step.h"
#include "core/ops/pair_training.h"
#include "core/ops/tangent_factors.h"
#include "models/neural/network_trainer.h"

namespace olrank {

namespace {

/// J steps over the whole history on L = Σ cross-entropy + mλ/2 ‖θ − c‖²: docs/MATH.md, "Training". With
/// `gd` and `nesterov` the step is σ_t = η/(κ_t + mλ), where κ_t estimates the largest curvature of the
/// data term; κ_t is recomputed when the history has grown by a tenth, or its documents by far. A training
/// that fails (core/math/optimizer_step.h) is undone and repeated with half the step until it holds.
///
/// Between two such trainings replay() descends on a sample, whose gradient is corrected by the known one
/// of the whole history at the latest training's result.
class FullBatchTrainer : public NetworkTrainer {
 public:
  explicit FullBatchTrainer(const TrainerSpec& spec)
      : spec_(spec), eigenvector_(spec.model.parameters()), gradient_(eigenvector_.size()) {
    if (replays()) {
      reference_.assign(spec.first.begin(), spec.first.end());
      reference_gradient_.resize(gradient_.size());
    }
    if (spec.settings.optimizer == Optimizer::kGradientDescent) return;
    first_moment_.resize(gradient_.size());
    position_.resize(gradient_.size());
    if (spec.settings.optimizer == Optimizer::kAdam) second_moment_.resize(gradient_.size());
  }

  std::optional<double> train(ExecutionContext& context, const TrainingTask& task,
                              std::span<float> theta) override {
    const DocumentHistory& history = task.history;
    const std::int64_t observed = history.observed();
    Problem problem;
    problem.docs = history.features();
    problem.terms = task.terms;
    problem.curvature_terms = history.terms();
    problem.weigh_by_ndcg = task.weigh_by_ndcg;
    if (task.weigh_by_ndcg) problem.lists = history.pair_lists();
    problem.observed = observed;
    problem.steps = spec_.settings.steps;
    problem.optimizer = spec_.settings.optimizer;
    problem.round = task.round;
    problem.centre = task.centre.empty() ? spec_.first : task.centre;
    if (by_curvature() &&
        (curvature_is_stale(observed, curvature_pairs_) || history.latest_docs_outgrow())) {
      curvature_ = find_curvature(context, problem, theta);
      curvature_pairs_ = observed;
    }
    const double step = descend_safely(context, problem, curvature_, theta);
    if (replays()) {
      reference_.assign(theta.begin(), theta.end());
      find_reference_gradient(context, problem);
      reference_gradient_ = gradient_;
    }
    return step;
  }
  std::optional<double> replay(ExecutionContext& context, const ReplayTask& task,
                               std::span<float> theta) override {
    const std::int64_t observed = task.history.observed();
    // A document whose scores overflow stays out, so that later rounds can train.
    if (find_reference_gradient(context, problem_of(task.changes, task.weigh_by_ndcg))) {
      for (std::size_t k = 0; k < gradient_.size(); ++k) reference_gradient_[k] += gradient_[k];
    }
    Problem problem = problem_of(task.drawn, task.weigh_by_ndcg);
    linear_.resize(gradient_.size());
    if (find_reference_gradient(context, problem)) {
      for (std::size_t k = 0; k < gradient_.size(); ++k) linear_[k] = reference_gradient_[k] - gradient_[k];
    } else {
      std::fill(linear_.begin(), linear_.end(), 0.0);
    }
    problem.linear = linear_;
    problem.observed = observed;
    problem.steps = spec_.settings.replay_steps;
    problem.optimizer = optimizer_of_replay(spec_.settings.optimizer);
    problem.round = task.round;
    problem.centre = task.centre.empty() ? spec_.first : task.centre;
    double curvature = curvature_;
    if (by_curvature()) {
      if (task.history.latest_docs_outgrow()) {
        curvature = curvature_ = find_curvature(context, problem, theta);
        curvature_pairs_ = observed;
      } else {
        // κ is a sum over pairs, and more have come since it was found.
        curvature *= static_cast<double>(observed) / static_cast<double>(curvature_pairs_);
      }
    }
    return descend_safely(context, problem, curvature, theta);
  }
  void fields(StateFields& state) override {
    state.numbers("trainer.curvature", curvature_);
    state.numbers("trainer.curvature_pairs", curvature_pairs_);
    state.sized("trainer.eigenvector", eigenvector_);
    state.numbers("trainer.trainings", trainings_);
    if (!replays()) return;
    state.sized("trainer.reference", reference_);
    state.sized("trainer.reference_gradient", reference_gradient_);
  }

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

  static Problem problem_of(const SampledPairs& pairs, bool weigh_by_ndcg) {
    Problem problem;
    problem.docs = pairs.sample.features();
    problem.terms = pairs.terms;
    problem.curvature_terms = pairs.sample.terms();
    problem.weigh_by_ndcg = weigh_by_ndcg;
    problem.lists = pairs.sample.lists();
    problem.scales = pairs.sample.scales();
    return problem;
  }
  PairObjective objective(const Problem& problem) const {
    return {1.0, spec_.prior_weight, problem.centre, problem.linear};
  }
  bool by_curvature() const { return spec_.settings.optimizer != Optimizer::kAdam; }
  bool replays() const { return spec_.settings.retraining().replays(); }
  double find_curvature(ExecutionContext& context, const Problem& problem, std::span<const float> theta) {
    const auto kept = spec_.model.keep_docs(problem.docs);
    // The weights of LambdaRank are at most 1, so the curvature without them is an upper bound.
    return spec_.model.find_curvature(context, theta, problem.docs, problem.curvature_terms, eigenvector_);
  }
  /// σ_t of the `repeats`-th repeat of this training, from this κ_t.
  double step_of(int repeats, double curvature) const {
    const TrainerSettings& settings = spec_.settings;
    const double rate =
        repeated_rate(settings.learning_rate * power_of(settings.learning_rate_decay, trainings_), repeats);
    if (!by_curvature()) return rate;
    return stable_step(rate, curvature, prior_curvature(spec_.prior_weight));
  }
  /// Trains on a problem, with the rule for failures, and returns σ_t. A repeat may find κ_t again.
  double descend_safely(ExecutionContext& context, const Problem& problem, double& curvature,
                        std::span<float> theta) {
    before_.assign(theta.begin(), theta.end());
    const auto kept = spec_.model.keep_docs(problem.docs);
    double step = 0.0;
    for (int repeats = 0;; ++repeats) {
      if (by_curvature() && repeats == kRepeatThatFindsCurvature)
        curvature = find_curvature(context, problem, theta);
      step = step_of(repeats, curvature);
      // LambdaRank descends another loss at each step; this one, unweighted, only shows an explosion.
      const double unweighted = problem.weigh_by_ndcg ? loss_at(context, problem, theta) : 0.0;
      const double descended = descend(context, problem, step, theta);
      const double began = problem.weigh_by_ndcg ? unweighted : descended;
      const double ended = loss_at(context, problem, theta);
      const auto pairs = static_cast<double>(problem.observed);
      if (!training_failed(began, ended, pairs, !problem.weigh_by_ndcg, repeats)) break;
      std::copy(before_.begin(), before_.end(), theta.begin());
      if (!can_repeat(began, repeats)) explain(context, problem, step, began, ended, theta);
    }
    ++trainings_;
    return step;
  }
  /// Steps from θ; the loss before the first.
  double descend(ExecutionContext& context, const Problem& problem, double step, std::span<float> theta) {
    double began = std::nan("");
    start_moments(theta);
    for (std::int64_t number = 1; number <= problem.steps; ++number) {
      const auto terms = terms_at(context, problem, theta);
      if (!terms) break;
      const double loss = find_gradient(context, problem, *terms, theta, number == 1);
      if (number == 1) began = loss;
      move(problem, number, step, theta);
    }
    return began;
  }
  void start_moments(std::span<const float> theta) {
    std::fill(first_moment_.begin(), first_moment_.end(), 0.0);
    std::fill(second_moment_.begin(), second_moment_.end(), 0.0);
    if (!position_.empty()) position_.assign(theta.begin(), theta.end());
  }
  /// Repeats a descent that failed, checks the loss after each step, restores θ and throws an error that
  /// names the step.
  [[noreturn]] void explain(ExecutionContext& context, const Problem& problem, double step, double began,
                            double ended, std::span<float> theta) {
    const auto pairs = static_cast<double>(problem.observed);
    const auto good = [&](double loss) {
      return std::isfinite(loss) && !loss_has_exploded(began, loss, pairs);
    };
    start_moments(theta);
    std::int64_t number = 1;
    double loss = began;
    for (; number < problem.steps && good(loss); ++number) {
      const auto terms = terms_at(context, problem, theta);
      if (!terms) break;
      find_gradient(context, problem, *terms, theta, false);
      move(problem, number, step, theta);
      loss = loss_at(context, problem, theta);
    }
    if (good(loss)) loss = ended;
    std::copy(before_.begin(), before_.end(), theta.begin());
    throw_diverged({problem.round, number, loss, spec_.settings.learning_rate, spec_.lambda});
  }
  /// Nothing if scores are not finite, so that LambdaRank's weights are undefined.
  std::optional<std::span<const PairTerm>> terms_at(ExecutionContext& context, const Problem& problem,
                                                    std::span<const float> theta) {
    if (!problem.weigh_by_ndcg) return problem.terms;
    scores_.resize(problem.docs.docs);
    spec_.model.score(context, theta, problem.docs, scores_);
    if (!all_finite(scores_)) return std::nullopt;
    ndcg_changes(problem.lists, scores_, changes_);
    for (std::size_t pair = 0; pair < problem.scales.size(); ++pair) changes_[pair] *= problem.scales[pair];
    fold_pairs(problem.terms, problem.lists.pairs, changes_, weighted_);
    return weighted_;
  }
  double loss_at(ExecutionContext& context, const Problem& problem, std::span<const float> theta) {
    return spec_.model.find_loss(context, theta, problem.docs, problem.terms, objective(problem));
  }
  /// gradient_ = that of the loss; returns the loss if asked to.
  double find_gradient(ExecutionContext& context, const Problem& problem, std::span<const PairTerm> terms,
                       std::span<const float> theta, bool with_loss) {
    if (with_loss)
      return spec_.model.find_loss_gradient(context, theta, problem.docs, terms, objective(problem),
                                            gradient_);
    spec_.model.find_gradient(context, theta, problem.docs, terms, objective(problem), gradient_);
    return std::nan("");
  }
  /// gradient_ = that of the data at the reference; false if it is not finite.
  bool find_reference_gradient(ExecutionContext& context, const Problem& problem) {
    const auto terms = terms_at(context, problem, reference_);
    if (!terms) return false;
    spec_.model.find_gradient(context, reference_, problem.docs, *terms, {}, gradient_);
    return std::all_of(gradient_.begin(), gradient_.end(),
                       [](double slope) { return std::isfinite(slope); });
  }
  void move(const Problem& problem, std::int64_t number, double step, std::span<float> theta) {
    if (problem.optimizer == Optimizer::kAdam) {
      adam_step(number, step, 0.0, gradient_, {first_moment_, second_moment_}, position_, theta);
    } else if (problem.optimizer == Optimizer::kNesterov) {
      nesterov_step(step, gradient_, first_moment_, position_, theta);
    } else {
      gradient_descent_step(step, gradient_, theta);
    }
  }

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

}  // namespace

std::unique_ptr<NetworkTrainer> make_full_batch_trainer(const TrainerSpec& spec) {
  return std::make_unique<FullBatchTrainer>(spec);
}

}  // namespace olrank
