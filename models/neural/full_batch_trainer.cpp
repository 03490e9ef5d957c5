#include "models/neural/full_batch_trainer.h"

#include <algorithm>
#include <cmath>

#include "core/learning/numeric_errors.h"
#include "core/math/norm.h"
#include "core/math/step_size.h"
#include "core/ops/largest_curvature.h"
#include "core/ops/optimizer_step.h"
#include "core/ops/tangent_factors.h"

namespace olrank {
FullBatchTrainer::FullBatchTrainer(const TrainerSpec& spec)
    : spec_(spec), eigenvector_(spec.shape.parameters()), gradient_(eigenvector_.size()) {
  if (spec.settings.optimizer == Optimizer::kGradientDescent) return;
  first_moment_.resize(gradient_.size());
  position_.resize(gradient_.size());
  if (spec.settings.optimizer == Optimizer::kAdam) second_moment_.resize(gradient_.size());
}

void FullBatchTrainer::find_curvature(ExecutionContext& context, const TrainingTask& task,
                                      std::span<const float> theta) {
  const FeatureMatrix docs = task.history.features();
  factors_.resize(docs.docs * spec_.shape.factors());
  tangent_factors(context, spec_.shape, theta, docs, factors_);
  // The weights of LambdaRank are at most 1, so the curvature without them is an upper bound.
  curvature_ = largest_curvature(context, spec_.shape, {factors_.data(), docs.docs}, task.history.terms(),
                                 eigenvector_);
}

std::optional<std::span<const PairTerm>> FullBatchTrainer::terms_at(ExecutionContext& context,
                                                                    const TrainingTask& task,
                                                                    std::span<const float> theta) {
  if (!task.weigh_by_ndcg) return task.terms;
  const FeatureMatrix docs = task.history.features();
  scores_.resize(docs.docs);
  score_docs(context, spec_.shape, theta, docs, scores_);
  if (!all_finite(scores_)) return std::nullopt;
  task.history.ndcg_changes(scores_, changes_);
  task.history.fold(changes_, weighted_);
  return weighted_;
}

double FullBatchTrainer::loss_at(ExecutionContext& context, const TrainingTask& task,
                                 std::span<const float> theta) const {
  return pair_loss(context, spec_.shape, theta, task.history.features(), task.terms, objective());
}

void FullBatchTrainer::move(std::int64_t number, double step, std::span<float> theta) {
  switch (spec_.settings.optimizer) {
    case Optimizer::kGradientDescent:
      gradient_descent_step(step, gradient_, theta);
      return;
    case Optimizer::kNesterov:
      nesterov_step(step, gradient_, first_moment_, position_, theta);
      return;
    case Optimizer::kAdam:
      adam_step(number, step, 0.0, gradient_, {first_moment_, second_moment_}, position_, theta);
      return;
  }
}

double FullBatchTrainer::descend(ExecutionContext& context, const TrainingTask& task, double step,
                                 std::span<float> theta) {
  const FeatureMatrix docs = task.history.features();
  const double target = spec_.settings.stop_gradient_norm * static_cast<double>(task.history.observed());
  double began = std::nan("");
  start_moments(theta);
  for (std::int64_t number = 1; number <= spec_.settings.steps; ++number) {
    const auto terms = terms_at(context, task, theta);
    if (!terms) break;
    if (number == 1) {
      began = pair_loss_gradient(context, spec_.shape, theta, docs, *terms, objective(), gradient_);
    } else {
      pair_gradient(context, spec_.shape, theta, docs, *terms, objective(), gradient_);
    }
    if (target > 0.0 && norm(gradient_) <= target) break;
    move(number, step, theta);
  }
  return began;
}

void FullBatchTrainer::start_moments(std::span<const float> theta) {
  std::fill(first_moment_.begin(), first_moment_.end(), 0.0);
  std::fill(second_moment_.begin(), second_moment_.end(), 0.0);
  if (!position_.empty()) position_.assign(theta.begin(), theta.end());
}

void FullBatchTrainer::explain(ExecutionContext& context, const TrainingTask& task, double step,
                               double began, double ended, std::span<float> theta) {
  const auto pairs = static_cast<double>(task.history.observed());
  const auto good = [&](double loss) {
    return std::isfinite(loss) && !loss_has_exploded(began, loss, pairs);
  };
  start_moments(theta);
  std::int64_t number = 1;
  double loss = began;
  for (; number < spec_.settings.steps && good(loss); ++number) {
    const auto terms = terms_at(context, task, theta);
    if (!terms) break;
    pair_gradient(context, spec_.shape, theta, task.history.features(), *terms, objective(), gradient_);
    move(number, step, theta);
    loss = loss_at(context, task, theta);
  }
  if (good(loss)) loss = ended;
  std::copy(before_.begin(), before_.end(), theta.begin());
  throw_diverged({task.round, number, loss, spec_.settings.learning_rate, spec_.lambda});
}

double FullBatchTrainer::step_of(int repeats) const {
  const TrainerSettings& settings = spec_.settings;
  const double rate = repeated_rate(
      decayed_rate(settings.learning_rate, settings.learning_rate_decay, trainings_), repeats);
  if (settings.optimizer == Optimizer::kAdam) return rate;
  return stable_step(rate, curvature_, prior_curvature(spec_.prior_weight));
}

std::optional<double> FullBatchTrainer::train(ExecutionContext& context, const TrainingTask& task,
                                              std::span<float> theta) {
  const bool by_curvature = spec_.settings.optimizer != Optimizer::kAdam;
  const std::int64_t observed = task.history.observed();
  if (by_curvature &&
      (curvature_is_stale(observed, curvature_pairs_) || task.history.latest_docs_outgrow())) {
    find_curvature(context, task, theta);
    curvature_pairs_ = observed;
  }
  before_.assign(theta.begin(), theta.end());
  double step = 0.0;
  for (int repeats = 0;; ++repeats) {
    if (by_curvature && repeats == kRepeatThatFindsCurvature) find_curvature(context, task, theta);
    step = step_of(repeats);
    // LambdaRank descends another loss at each step; this one, unweighted, only shows an explosion.
    const double unweighted = task.weigh_by_ndcg ? loss_at(context, task, theta) : 0.0;
    const double descended = descend(context, task, step, theta);
    const double began = task.weigh_by_ndcg ? unweighted : descended;
    const double ended = loss_at(context, task, theta);
    if (!training_failed(began, ended, static_cast<double>(observed), !task.weigh_by_ndcg, repeats)) break;
    std::copy(before_.begin(), before_.end(), theta.begin());
    if (!can_repeat(began, repeats)) explain(context, task, step, began, ended, theta);
  }
  ++trainings_;
  return step;
}

void FullBatchTrainer::save(StateWriter& state) const {
  state.put("trainer.curvature", curvature_);
  state.put("trainer.curvature_pairs", curvature_pairs_);
  state.put("trainer.eigenvector", eigenvector_);
  state.put("trainer.trainings", trainings_);
}

void FullBatchTrainer::load(StateReader& state) {
  curvature_ = state.get_one<double>("trainer.curvature");
  curvature_pairs_ = state.get_one<std::int64_t>("trainer.curvature_pairs");
  state.get_into("trainer.eigenvector", std::span(eigenvector_));
  trainings_ = state.get_one<std::int64_t>("trainer.trainings");
}

}  // namespace olrank
