#include "models/skeleton/score_model.h"

#include <algorithm>

#include "core/metrics/score_order.h"
#include "core/online/numeric_errors.h"

namespace olrank {

void ScoreModel::find_score_gradient(ExecutionContext& context, std::span<const float> theta,
                                     FeatureMatrix docs, ScoreSlopes find_slopes,
                                     std::span<double> gradient) const {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto scores = scratch.take<float>(docs.docs);
  const auto slopes = scratch.take<double>(docs.docs);
  score(context, theta, docs, scores);
  find_slopes(scores, slopes);
  std::fill(gradient.begin(), gradient.end(), 0.0);
  add_gradient(context, theta, docs, slopes, gradient);
}

void score_and_order(ExecutionContext& context, const ScoreModel& model, std::span<const float> theta,
                     FeatureMatrix docs, std::vector<float>& scores, std::vector<std::int32_t>& by_score) {
  scores.resize(docs.docs);
  model.score(context, theta, docs, scores);
  order_by_score(context, scores, by_score);
}

void order_by_score(ExecutionContext& context, std::span<const float> scores,
                    std::vector<std::int32_t>& by_score) {
  by_score.resize(scores.size());
  const std::int64_t bad = order_by_score(scores, by_score, context.scratch());
  if (bad >= 0) throw_bad_score(bad);
}

}  // namespace olrank
