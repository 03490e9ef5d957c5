#include "models/skeleton/belief.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/metrics/list_metrics.h"
#include "core/online/retraining.h"

namespace olrank {

CertaintyRule find_certain_orders(ExecutionContext& context, const CertaintyPolicy& policy,
                                  const Belief& belief, const Evidence& evidence,
                                  std::span<const std::int32_t> by_score, OrderBits& orders) {
  const double log_det = policy.theory ? belief.log_det() : 0.0;
  const CertaintyRule rule = policy.rule(log_det, evidence.least_difference);
  if (belief.has_widths()) {
    certain_by_width(rule, evidence.scores, by_score, evidence.width_sq, orders);
  } else {
    certain_by_vote(evidence.members, rule.least_difference, evidence.member_scores, by_score, orders,
                    context.scratch());
  }
  return rule;
}

void member_count(StateFields& state, std::size_t expected) {
  state.number("members", static_cast<std::int64_t>(expected), [&](std::int64_t saved) {
    if (saved != static_cast<std::int64_t>(expected))
      state.reader().fail(fmt::format("The saved ensemble has {} members, this one {}.", saved, expected));
  });
}

void ControlledOrders::find(ExecutionContext& context, const CertaintyPolicy& policy, const Belief& belief,
                            const Evidence& evidence, const FairRound& fair, double gain) {
  const auto raise = [&](std::span<const float> scores, std::vector<float>& raised) {
    raised.assign(scores.begin(), scores.end());
    const std::size_t docs = fair.groups.size();
    for (std::size_t i = 0; i < raised.size(); ++i)
      raised[i] = static_cast<float>(double{raised[i]} + fair_control(fair, gain, fair.groups[i % docs]));
  };
  raise(evidence.scores, scores_);
  raise(evidence.member_scores, member_scores_);
  order_by_score(context, scores_, by_score_);
  Evidence controlled = evidence;
  controlled.scores = scores_;
  controlled.member_scores = member_scores_;
  find_certain_orders(context, policy, belief, controlled, by_score_, orders_);
}

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

Evidence take_votes(Scratch& scratch, std::int64_t members, std::int64_t docs) {
  Evidence evidence;
  evidence.members = members;
  evidence.scores = scratch.take<float>(docs);
  evidence.member_scores = scratch.take<float>(members * docs);
  return evidence;
}

ModelTensors ensemble_tensors(const ScoreModel& model, MemberThetas thetas) {
  ModelTensors all;
  for (std::size_t member = 0; member < thetas.size(); ++member) {
    ModelTensors one = model.tensors(thetas[member]);
    if (member == 0) all.architecture = std::move(one.architecture);
    for (auto& tensor : one.tensors) {
      tensor.name = fmt::format("members.{}.{}", member, tensor.name);
      all.tensors.push_back(std::move(tensor));
    }
  }
  all.architecture.emplace_back("members", fmt::format("{}", thetas.size()));
  return all;
}

}  // namespace olrank
