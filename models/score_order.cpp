#include "models/score_order.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/metrics/score_order.h"

namespace olrank {

void score_and_order(ExecutionContext& context, const ScoreModel& model, std::span<const float> theta,
                     FeatureMatrix docs, std::vector<float>& scores, std::vector<std::int32_t>& by_score) {
  scores.resize(static_cast<std::size_t>(docs.docs));
  model.score(context, theta, docs, scores);
  order_by_score(context, scores, by_score);
}

void order_by_score(ExecutionContext& context, std::span<const float> scores,
                    std::vector<std::int32_t>& by_score) {
  by_score.resize(scores.size());
  const std::int64_t bad = order_by_score(scores, by_score, context.scratch());
  if (bad >= 0) throw NumericError(fmt::format("The score of document {} is not a number.", bad));
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
