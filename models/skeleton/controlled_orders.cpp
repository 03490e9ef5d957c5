#include "models/skeleton/controlled_orders.h"

#include "core/fair/fair_control.h"
#include "models/skeleton/score_model.h"

namespace olrank {

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
