#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/skeleton/ranker_settings.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {

/// A ranker whose lists are Plackett-Luce draws over the scores of a deployed policy, which the policy that
/// is learned from them replaces every `refresh_rounds` rounds.
class DeployedPolicyRanker : public ScoreModelRanker {
 public:
  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  /// Probabilities of a rank sum over all documents of the query.
  bool learns_from_unshown() const override { return true; }
  void fields(StateFields& state) override;

 protected:
  DeployedPolicyRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                       std::vector<float> first_theta);

  std::span<const float> deployed() const { return deployed_; }
  /// The end of learn(), which deploys the learned policy when it is time.
  void end_policy_round();

 private:
  ScoreLists lists() const override;

  PhiloxKey list_key_;
  std::int64_t refresh_rounds_;

  // State.
  std::vector<float> deployed_;     // θ of the policy that shows lists
  std::int64_t since_refresh_ = 0;  // rounds
};

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
  /// Finds how far clicks from each rank downwards are above their mean so far, which then takes them in.
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
