#include "models/skeleton/belief.h"

#include <fmt/format.h>

#include "core/explore/certain_orders.h"
#include "core/fair/exposure.h"
#include "models/skeleton/score_model.h"

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

}  // namespace olrank
