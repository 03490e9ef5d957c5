#include "models/neural/full_batch_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/ops/tangent_factors.h"

namespace olrank {
namespace {

constexpr double kMomentum = 0.9;
// Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015.
constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;

double norm(std::span<const double> vector) {
  double sum = 0.0;
  for (const double value : vector) sum += value * value;
  return std::sqrt(sum);
}

}  // namespace

FullBatchTrainer::FullBatchTrainer(const TrainerSpec& spec)
    : spec_(spec),
      eigenvector_(static_cast<std::size_t>(spec.shape.parameters())),
      gradient_(eigenvector_.size()) {
  if (spec.settings.optimizer == Optimizer::kGradientDescent) return;
  first_moment_.resize(gradient_.size());
  position_.resize(gradient_.size());
  if (spec.settings.optimizer == Optimizer::kAdam) second_moment_.resize(gradient_.size());
}

void FullBatchTrainer::refresh_curvature(ExecutionContext& context, const TrainingTask& task,
                                         std::span<const float> theta) {
  const std::int64_t observed = task.history.observed();
  if (curvature_pairs_ > 0 && 10 * observed < 11 * curvature_pairs_) return;
  const FeatureMatrix docs = task.history.features();
  factors_.resize(static_cast<std::size_t>(docs.docs * spec_.shape.factors()));
  tangent_factors(context, spec_.shape, theta, docs, factors_);
  // Weights of LambdaRank are at most 1, so that the curvature without them is a bound.
  curvature_ = largest_curvature(context, spec_.shape, {factors_.data(), docs.docs}, task.history.terms(),
                                 eigenvector_);
  curvature_pairs_ = observed;
}

std::span<const PairTerm> FullBatchTrainer::terms_at(ExecutionContext& context, const TrainingTask& task,
                                                     std::span<const float> theta) {
  if (!task.weigh_by_ndcg) return task.terms;
  const FeatureMatrix docs = task.history.features();
  scores_.resize(static_cast<std::size_t>(docs.docs));
  score_docs(context, spec_.shape, theta, docs, scores_);
  task.history.ndcg_changes(scores_, changes_);
  task.history.fold(changes_, weighted_);
  return weighted_;
}

void FullBatchTrainer::move(std::int64_t number, double step, std::span<float> theta) {
  switch (spec_.settings.optimizer) {
    case Optimizer::kGradientDescent:
      for (std::size_t k = 0; k < theta.size(); ++k) {
        theta[k] = static_cast<float>(double{theta[k]} - step * gradient_[k]);
      }
      return;
    case Optimizer::kNesterov:
      // θ is the point ahead, where the gradient was taken; position_ is where the velocity has carried.
      for (std::size_t k = 0; k < theta.size(); ++k) {
        const double carried = double{theta[k]} - step * gradient_[k];
        first_moment_[k] = carried - position_[k];
        position_[k] = carried;
        theta[k] = static_cast<float>(carried + kMomentum * first_moment_[k]);
      }
      return;
    case Optimizer::kAdam: {
      const double correction1 = 1.0 - std::pow(kBeta1, static_cast<double>(number));
      const double correction2 = 1.0 - std::pow(kBeta2, static_cast<double>(number));
      for (std::size_t k = 0; k < theta.size(); ++k) {
        first_moment_[k] = kBeta1 * first_moment_[k] + (1.0 - kBeta1) * gradient_[k];
        second_moment_[k] = kBeta2 * second_moment_[k] + (1.0 - kBeta2) * gradient_[k] * gradient_[k];
        position_[k] -= step * (first_moment_[k] / correction1) /
                        (std::sqrt(second_moment_[k] / correction2) + kEpsilon);
        theta[k] = static_cast<float>(position_[k]);
      }
      return;
    }
  }
}

std::pair<double, double> FullBatchTrainer::descend(ExecutionContext& context, const TrainingTask& task,
                                                    double step, std::span<float> theta) {
  const PairObjective objective{1.0, prior_weight(), spec_.first};
  const FeatureMatrix docs = task.history.features();
  const double target = spec_.settings.stop_gradient_norm * static_cast<double>(task.history.observed());
  std::fill(first_moment_.begin(), first_moment_.end(), 0.0);
  std::fill(second_moment_.begin(), second_moment_.end(), 0.0);
  if (!position_.empty()) position_.assign(theta.begin(), theta.end());
  double began = 0.0;
  for (std::int64_t number = 1; number <= spec_.settings.steps; ++number) {
    const auto terms = terms_at(context, task, theta);
    const double loss = pair_loss_gradient(context, spec_.shape, theta, docs, terms, objective, gradient_);
    if (!std::isfinite(loss)) {
      throw NumericError(fmt::format(
          "Training stopped in round {} at step {}: the loss is {}. A smaller learning_rate than {}, or "
          "a larger lambda than {}, keeps it finite.",
          task.round, number, loss, spec_.settings.learning_rate, spec_.lambda));
    }
    if (number == 1) began = loss;
    if (target > 0.0 && norm(gradient_) <= target) break;
    move(number, step, theta);
  }
  // LambdaRank's gradients are not those of one loss, so that there is none to look at.
  const double ended =
      task.weigh_by_ndcg ? began : pair_loss(context, spec_.shape, theta, docs, task.terms, objective);
  return {began, ended};
}

std::optional<double> FullBatchTrainer::train(ExecutionContext& context, const TrainingTask& task,
                                              std::span<float> theta) {
  double step = spec_.settings.learning_rate *
                std::pow(spec_.settings.learning_rate_decay, static_cast<double>(trainings_));
  if (spec_.settings.optimizer != Optimizer::kAdam) {
    refresh_curvature(context, task, theta);
    step /= curvature_ + spec_.prior_scale * spec_.lambda;
  }
  before_.assign(theta.begin(), theta.end());
  try {
    const auto [began, ended] = descend(context, task, step, theta);
    if (!(ended <= began)) {
      std::copy(before_.begin(), before_.end(), theta.begin());
      step *= 0.5;
      descend(context, task, step, theta);
    }
  } catch (const NumericError&) {
    std::copy(before_.begin(), before_.end(), theta.begin());
    throw;
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
