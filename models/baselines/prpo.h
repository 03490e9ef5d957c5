#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/baselines/deployed_policy.h"
#include "models/skeleton/ranker_request.h"

namespace olrank {

/// Proximal ranking policy optimisation, online. Gupta, Oosterhuis and de Rijke, "Practical and robust
/// safety guarantees for advanced counterfactual learning to rank", CIKM 2024: the objective gives no
/// reward for exposure beyond a factor of what a safe policy gives. Here the safe policy shows the lists,
/// as Plackett-Luce draws over its scores, and every `refresh_rounds` rounds it becomes the policy that has
/// been learned from them. Each round takes one step.
/// Deviation: a document's exposure is that at its rank, given the documents above it, for which the ratio
/// is known exactly; and a rank's reward is the clicks from it downwards, above their mean so far, which
/// needs no estimate of relevance.
class PrpoRanker : public DeployedPolicyRanker {
 public:
  PrpoRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
             std::vector<float> first_theta = {});

  LearnReport learn(RoundContext& context, const Feedback& feedback) override;
  void fields(StateFields& state) override;

 private:
  /// What the clicks from each rank downwards are above their mean so far, which then takes them in.
  void find_advantages(const Feedback& feedback);

  double clip_;

  // State.
  std::vector<double> clicks_below_;  // by rank: clicks from it downwards in all rounds so far
  std::vector<std::int64_t> lists_;   // by rank: lists that had it

  std::vector<double> advantages_;  // by rank
};

std::unique_ptr<OnlineRanker> make_prpo(const RankerRequest& request);
void set_prpo_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
