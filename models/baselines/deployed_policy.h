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

std::unique_ptr<OnlineRanker> make_prpo(const RankerRequest& request);
void set_prpo_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
