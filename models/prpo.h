#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/ranker_request.h"
#include "models/score_model_ranker.h"

namespace olrank {

/// Proximal ranking policy optimisation, online. Gupta, Oosterhuis and de Rijke, "Practical and robust
/// safety guarantees for advanced counterfactual learning to rank", CIKM 2024: the objective gives no
/// reward for exposure beyond a factor of what a safe policy gives. Here the safe policy shows the lists,
/// as Plackett-Luce draws over its scores, and every `refresh_rounds` rounds it becomes the policy that has
/// been learned from them. Each round takes one step.
/// Deviation: a document's exposure is that at its rank, given the documents above it, for which the ratio
/// is known exactly; and a rank's reward is the clicks from it downwards, above their mean so far, which
/// needs no estimate of relevance.
class PrpoRanker : public ScoreModelRanker {
 public:
  PrpoRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
             std::vector<float> first_theta = {});

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  std::shared_ptr<const FrozenRanker> freeze() const override;
  /// Probabilities of a rank sum over all documents of the query.
  bool learns_from_unshown() const override { return true; }
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;
  void save(StateWriter& state) const override;
  void load(StateReader& state) override;

 private:
  /// What the clicks from each rank downwards are above their mean so far, which then takes them in.
  void find_advantages(const Feedback& feedback);

  PhiloxKey list_key_;
  double clip_;
  std::int64_t refresh_rounds_;

  // State.
  std::vector<float> safe_;           // θ of the policy that shows lists
  std::int64_t since_refresh_ = 0;    // rounds
  std::vector<double> clicks_below_;  // by rank: clicks from it downwards in all rounds so far
  std::vector<std::int64_t> lists_;   // by rank: lists that had it

  std::vector<double> advantages_;  // by rank
};

std::unique_ptr<OnlineRanker> make_prpo(const RankerRequest& request);
void set_prpo_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
