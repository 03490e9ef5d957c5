#include "models/skeleton/tangent_model.h"

#include <algorithm>

#include "core/ops/largest_curvature.h"

namespace olrank {

void TangentModel::add_gradient(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                                std::span<const double> weights, std::span<double> gradient) const {
  add_gradient_of_scores(
      context, theta, docs,
      [weights](std::span<const float>, std::span<double> out) {
        std::copy(weights.begin(), weights.end(), out.begin());
      },
      gradient);
}

void TangentModel::find_score_gradient(ExecutionContext& context, std::span<const float> theta,
                                       FeatureMatrix docs, ScoreSlopes find_slopes,
                                       std::span<double> gradient) const {
  std::fill(gradient.begin(), gradient.end(), 0.0);
  add_gradient_of_scores(context, theta, docs, find_slopes, gradient);
}

double TangentModel::find_loss_gradient(ExecutionContext& context, std::span<const float> theta,
                                        FeatureMatrix docs, std::span<const PairTerm> terms,
                                        const PairObjective& objective, std::span<double> gradient) const {
  double loss = 0.0;
  std::fill(gradient.begin(), gradient.end(), 0.0);
  add_gradient_of_scores(
      context, theta, docs,
      [&](std::span<const float> scores, std::span<double> weights) {
        loss = objective.data_scale * pair_loss_of_scores(context, terms, scores);
        pair_slopes_of_scores(context, terms, scores, weights);
        for (double& weight : weights) weight *= objective.data_scale;
      },
      gradient);
  add_parameter_gradient(theta, objective, gradient);
  return loss + parameter_loss(theta, objective);
}

void TangentModel::find_gradient(ExecutionContext& context, std::span<const float> theta,
                                 FeatureMatrix docs, std::span<const PairTerm> terms,
                                 const PairObjective& objective, std::span<double> gradient) const {
  find_loss_gradient(context, theta, docs, terms, objective, gradient);
}

double TangentModel::find_loss(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                               std::span<const PairTerm> terms, const PairObjective& objective) const {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto scores = scratch.take<float>(docs.docs);
  score(context, theta, docs, scores);
  return objective.data_scale * pair_loss_of_scores(context, terms, scores) +
         parameter_loss(theta, objective);
}

double TangentModel::find_curvature(ExecutionContext& context, std::span<const float> theta,
                                    FeatureMatrix docs, std::span<const PairTerm> terms,
                                    std::span<double> vector) const {
  return largest_curvature(
      context, docs.docs,
      [&](std::span<const double> v, std::span<double> products) {
        multiply_gradients(context, theta, docs, v, products);
      },
      [&](std::span<const double> weights, std::span<double> sum) {
        std::fill(sum.begin(), sum.end(), 0.0);
        add_gradient(context, theta, docs, weights, sum);
      },
      terms, vector);
}

}  // namespace olrank
