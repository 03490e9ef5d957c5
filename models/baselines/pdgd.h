#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/skeleton/ranker_request.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {

/// Pairwise differentiable gradient descent: Oosterhuis and de Rijke, "Differentiable unbiased online
/// learning to rank", CIKM 2018, Algorithm 1. Lists are Plackett-Luce draws over the scores.
class PdgdRanker : public ScoreModelRanker {
 public:
  PdgdRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
             std::vector<float> first_theta = {});

  /// The denominators of its weights sum over all documents of the query.
  bool learns_from_unshown() const override { return true; }
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;

 private:
  ScoreLists lists() const override;

  PhiloxKey list_key_;
  std::vector<PreferencePair> pairs_;
};

std::unique_ptr<OnlineRanker> make_pdgd(const RankerRequest& request);
void set_pdgd_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
