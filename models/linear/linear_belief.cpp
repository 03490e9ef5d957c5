#include "models/linear/linear_belief.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/math/certainty.h"
#include "models/linear/linear_ranking.h"
#include "models/skeleton/ensemble_model.h"

namespace olrank {

LinearWidths::LinearWidths(std::int64_t features, RowCovariance covariance)
    : model_(features), covariance_(std::move(covariance)) {}

Evidence LinearWidths::take_evidence(Scratch& scratch, std::int64_t, std::int64_t docs) const {
  Evidence evidence;
  evidence.scores = scratch.take<float>(docs);
  evidence.width_sq = scratch.take<double>(docs * docs);
  return evidence;
}

void LinearWidths::score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                         Evidence& evidence) const {
  mean_score(context, thetas, docs, evidence.scores);
}

void LinearWidths::mean_score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                              std::span<float> scores) const {
  model_.score(context, thetas.front(), docs, scores);
}

void LinearWidths::measure_widths(ExecutionContext& context, FeatureMatrix docs, Evidence& evidence) const {
  const Scratch::Frame frame(context.scratch());
  const auto rows = context.scratch().take<double>(docs.docs * docs.features);
  std::copy_n(docs.values, rows.size(), rows.begin());
  covariance_.width_sq(context, rows, docs.docs, evidence.width_sq);
}

void LinearWidths::observe(ExecutionContext& context, FeatureMatrix docs, const Evidence&,
                           std::span<const PreferencePair> pairs) {
  const Scratch::Frame frame(context.scratch());
  const auto rows =
      context.scratch().take<double>(pairs.size() * static_cast<std::size_t>(model_.features()));
  write_difference_rows(docs, pairs, rows);
  covariance_.observe(context, rows, std::ssize(pairs));
}

std::shared_ptr<const Belief> LinearWidths::freeze() const {
  return std::make_shared<LinearWidths>(model_.features(), covariance_);
}

ModelTensors LinearWidths::model(MemberThetas thetas) const {
  return model_.tensors(thetas.front());
}

std::vector<RankerFigure> LinearWidths::figures(ExecutionContext&) const {
  return {{"drift", covariance_.drift()}};
}

Evidence LinearVotes::take_evidence(Scratch& scratch, std::int64_t members, std::int64_t docs) const {
  return take_votes(scratch, members, docs);
}

void LinearVotes::score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                        Evidence& evidence) const {
  mean_score(context, thetas, docs, evidence.scores);
  const std::size_t count = evidence.scores.size();
  for (std::size_t member = 0; member < thetas.size(); ++member)
    model_.score(context, thetas[member], docs, evidence.member_scores.subspan(member * count, count));
  float largest = 0.0F;
  for (const float score : evidence.member_scores) largest = std::max(largest, std::fabs(score));
  evidence.least_difference = rounding_of_scores(largest);
}

void LinearVotes::mean_score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                             std::span<float> scores) const {
  const Scratch::Frame frame(context.scratch());
  const auto mean = context.scratch().take<float>(thetas.front().size());
  for (std::size_t k = 0; k < mean.size(); ++k) {
    double sum = 0.0;
    for (const auto& theta : thetas) sum += double{theta[k]};
    mean[k] = static_cast<float>(sum / static_cast<double>(thetas.size()));
  }
  model_.score(context, mean, docs, scores);
}

std::shared_ptr<const Belief> LinearVotes::freeze() const {
  return std::make_shared<LinearVotes>(model_.features());
}

ModelTensors LinearVotes::model(MemberThetas thetas) const {
  return ensemble_tensors(model_, thetas);
}

}  // namespace olrank
