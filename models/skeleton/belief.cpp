#include "models/skeleton/belief.h"

#include "core/explore/certain_orders.h"

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

}  // namespace olrank
