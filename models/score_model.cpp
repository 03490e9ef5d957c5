#include "models/score_model.h"

#include <algorithm>

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

}  // namespace olrank
