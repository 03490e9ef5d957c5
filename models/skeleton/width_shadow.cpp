#include "models/skeleton/width_shadow.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace olrank {

WidthShadow::WidthShadow(const TangentShape& shape, std::unique_ptr<Posterior> posterior)
    : shape_(shape), posterior_(std::move(posterior)) {}

TangentFactors WidthShadow::factors_of(std::span<const std::int32_t> shown, const Evidence& evidence) {
  const auto factors = static_cast<std::size_t>(shape_.factors());
  shown_factors_.clear();
  for (const std::int32_t doc : shown) {
    const auto row = evidence.factors.subspan(static_cast<std::size_t>(doc) * factors, factors);
    shown_factors_.insert(shown_factors_.end(), row.begin(), row.end());
  }
  return {shown_factors_.data(), std::ssize(shown)};
}

void WidthShadow::compare(ExecutionContext& context, std::span<const std::int32_t> shown,
                          const Evidence& evidence, const CertaintyRule& rule, RankedList& list) {
  scores_.clear();
  own_sq_.clear();
  for (const std::int32_t i : shown) {
    scores_.push_back(double{evidence.scores[i]});
    for (const std::int32_t j : shown) own_sq_.push_back(evidence.width_sq[i * evidence.scores.size() + j]);
  }
  exact_sq_.resize(own_sq_.size());
  posterior_->width_sq(context, factors_of(shown, evidence), exact_sq_);
  list.turned_decisions = compare_widths({rule, scores_, own_sq_, exact_sq_}, ratios_);
  list.width_ratios = ratios_;
}

void WidthShadow::observe(ExecutionContext& context, std::span<const std::int32_t> shown,
                          const Evidence& evidence, std::span<const PreferencePair> pairs) {
  const auto rank_of = [&](std::int32_t doc) {
    return static_cast<std::int32_t>(std::find(shown.begin(), shown.end(), doc) - shown.begin());
  };
  shown_pairs_.clear();
  for (const PreferencePair& pair : pairs)
    shown_pairs_.push_back({rank_of(pair.winner), rank_of(pair.loser)});
  posterior_->observe(context, factors_of(shown, evidence), shown_pairs_);
}

Tally compare_widths(const ShownWidths& shown, std::vector<double>& ratios) {
  const std::size_t docs = shown.scores.size();
  ratios.clear();
  Tally turned;
  for (std::size_t a = 0; a < docs; ++a) {
    for (std::size_t b = a + 1; b < docs; ++b) {
      const double own = shown.own_sq[a * docs + b];
      const double exact = shown.exact_sq[a * docs + b];
      const double difference = std::fabs(shown.scores[a] - shown.scores[b]);
      ++turned.total;
      if (is_certain(shown.rule, difference, own) != is_certain(shown.rule, difference, exact))
        ++turned.count;
      if (exact > 0.0) ratios.push_back(std::sqrt(std::max(0.0, own) / exact));
    }
  }
  return turned;
}

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
