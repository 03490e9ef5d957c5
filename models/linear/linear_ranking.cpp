#include "models/linear/linear_ranking.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/metrics/ranking.h"
#include "core/ops/folded_pair_gradient.h"

namespace olrank {

std::int64_t padded_features(std::int64_t features) {
  return (features + FoldedPairs::kPadding - 1) / FoldedPairs::kPadding * FoldedPairs::kPadding;
}

NewtonTrainer::Options newton_options(const TrainerSettings& settings) {
  return {.tolerance = settings.stop_gradient_norm, .max_steps = settings.steps};
}

double ridge_weight(LossForm form, double lambda, std::int64_t observed) {
  return form == LossForm::kSum ? lambda : 2.0 * lambda * static_cast<double>(observed);
}

void score_and_order(ExecutionContext& context, const ScoreModel& model, std::span<const float> theta,
                     FeatureMatrix docs, std::vector<float>& scores, std::vector<std::int32_t>& by_score) {
  scores.resize(static_cast<std::size_t>(docs.docs));
  model.score(context, theta, docs, scores);
  order_by_score(context, scores, by_score);
}

void order_by_score(ExecutionContext& context, std::span<const float> scores,
                    std::vector<std::int32_t>& by_score) {
  by_score.resize(scores.size());
  const std::int64_t bad = rank_by_score(scores, by_score, context.scratch());
  if (bad >= 0) throw NumericError(fmt::format("The score of document {} is not a number.", bad));
}

void write_difference_rows(FeatureMatrix docs, std::span<const PreferencePair> pairs,
                           std::span<double> rows) {
  std::size_t at = 0;
  for (const auto& [winner, loser] : pairs) {
    const auto x = docs.doc(winner);
    const auto y = docs.doc(loser);
    for (std::size_t k = 0; k < x.size(); ++k) rows[at++] = double{x[k]} - double{y[k]};
  }
}

void write_certain_matrix(const OrderBits& orders, std::span<const std::int32_t> by_score,
                          std::int64_t docs, std::vector<std::uint8_t>& matrix) {
  matrix.assign(static_cast<std::size_t>(docs * docs), 0);
  for (std::int64_t a = 0; a < docs; ++a) {
    const std::int64_t i = by_score[static_cast<std::size_t>(a)];
    orders.for_each_below(a, [&](std::int64_t b) {
      matrix[static_cast<std::size_t>(i * docs + by_score[static_cast<std::size_t>(b)])] = 1;
    });
  }
}

}  // namespace olrank
