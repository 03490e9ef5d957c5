#include "models/neural/network_belief.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/math/certainty.h"
#include "core/online/numeric_errors.h"
#include "models/skeleton/ensemble_model.h"

namespace olrank {
namespace {

/// How far rounding can move a difference of scores.
double score_rounding(std::span<const float> magnitudes) {
  float largest = 0.0F;
  for (const float magnitude : magnitudes) largest = std::max(largest, magnitude);
  return rounding_of_scores(largest);
}

/// The mean of [members × docs], summed in the order of members.
void mean_over_members(std::span<const float> of_members, std::span<float> mean) {
  const std::size_t members = of_members.size() / std::max<std::size_t>(mean.size(), 1);
  for (std::size_t doc = 0; doc < mean.size(); ++doc) {
    double sum = 0.0;
    for (std::size_t member = 0; member < members; ++member)
      sum += double{of_members[member * mean.size() + doc]};
    mean[doc] = static_cast<float>(sum / static_cast<double>(members));
  }
}

}  // namespace

NetworkWidths::NetworkWidths(std::shared_ptr<const TangentModel> model,
                             std::unique_ptr<Posterior> posterior)
    : model_(std::move(model)) {
  learning_ = posterior.get();
  posterior_ = std::move(posterior);
}

NetworkWidths::NetworkWidths(std::shared_ptr<const TangentModel> model,
                             std::shared_ptr<const Posterior> frozen)
    : model_(std::move(model)), posterior_(std::move(frozen)) {}

Evidence NetworkWidths::take_evidence(Scratch& scratch, std::int64_t, std::int64_t docs) const {
  Evidence evidence;
  evidence.scores = scratch.take<float>(docs);
  evidence.factors = scratch.take<float>(docs * model_->tangent_shape().factors());
  evidence.width_sq = scratch.take<double>(docs * docs);
  return evidence;
}

void NetworkWidths::score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                          Evidence& evidence) const {
  const Scratch::Frame frame(context.scratch());
  const auto magnitudes = context.scratch().take<float>(evidence.scores.size());
  model_->find_factors(context, thetas.front(), docs, evidence.factors, evidence.scores, magnitudes);
  evidence.least_difference = score_rounding(magnitudes);
}

void NetworkWidths::mean_score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                               std::span<float> scores) const {
  model_->score(context, thetas.front(), docs, scores);
}

void NetworkWidths::measure_widths(ExecutionContext& context, FeatureMatrix docs,
                                   Evidence& evidence) const {
  const WidthHealth health =
      posterior_->widths(context, {evidence.factors.data(), docs.docs}, evidence.width_sq);
  if (health.lost > 0) throw_lost_list_widths(health.lost, docs.docs);
}

void NetworkWidths::measure_and_repair_widths(ExecutionContext& context, FeatureMatrix docs,
                                              Evidence& evidence) {
  learning_->width_sq(context, {evidence.factors.data(), docs.docs}, evidence.width_sq);
}

void NetworkWidths::observe(ExecutionContext& context, FeatureMatrix docs, const Evidence& evidence,
                            std::span<const PreferencePair> pairs) {
  learning_->observe(context, {evidence.factors.data(), docs.docs}, pairs);
}

std::shared_ptr<const Belief> NetworkWidths::freeze() const {
  return std::shared_ptr<const Belief>(new NetworkWidths(model_, posterior_->freeze()));
}

ModelTensors NetworkWidths::model(MemberThetas thetas) const {
  return model_->tensors(thetas.front());
}

std::vector<RankerFigure> NetworkWidths::figures(ExecutionContext& context) const {
  return {{"drift", posterior_->drift(context)},
          {"negative_widths", static_cast<double>(posterior_->negative_widths())},
          {"posterior_bytes", static_cast<double>(posterior_->bytes())}};
}

Evidence NetworkVotes::take_evidence(Scratch& scratch, std::int64_t members, std::int64_t docs) const {
  return take_votes(scratch, members, docs);
}

void NetworkVotes::score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                         Evidence& evidence) const {
  const std::size_t count = evidence.scores.size();
  const Scratch::Frame frame(context.scratch());
  const auto magnitudes = context.scratch().take<float>(count);
  evidence.least_difference = 0.0;
  for (std::size_t member = 0; member < thetas.size(); ++member) {
    model_->score_with_magnitudes(context, thetas[member], docs,
                                  evidence.member_scores.subspan(member * count, count), magnitudes);
    evidence.least_difference = std::max(evidence.least_difference, score_rounding(magnitudes));
  }
  mean_over_members(evidence.member_scores, evidence.scores);
}

void NetworkVotes::mean_score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                              std::span<float> scores) const {
  std::vector<float> of_member(scores.size());
  std::vector<double> sums(scores.size());
  for (const auto& theta : thetas) {
    model_->score(context, theta, docs, of_member);
    for (std::size_t doc = 0; doc < sums.size(); ++doc) sums[doc] += double{of_member[doc]};
  }
  for (std::size_t doc = 0; doc < sums.size(); ++doc)
    scores[doc] = static_cast<float>(sums[doc] / static_cast<double>(thetas.size()));
}

std::shared_ptr<const Belief> NetworkVotes::freeze() const {
  return std::make_shared<NetworkVotes>(model_);
}

ModelTensors NetworkVotes::model(MemberThetas thetas) const {
  return ensemble_tensors(*model_, thetas);
}

}  // namespace olrank
