#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/online/labelled_queries.h"
#include "models/skeleton/ranker_request.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {

/// LambdaRank on true grades, one gradient step per round on those of the asked query:
/// θ ← θ − η_t Σ_i slopes[i] ∇f(x_i), slopes of ListLoss::kLambdaRank, regardless of the clicks. It shows
/// lists by score; there is no regulariser. What a learner from clicks could do at best with as little
/// computation; LambdaRankLabels is what the labels allow.
class LambdaRankStep : public ScoreModelRanker {
 public:
  /// `labels` has to outlive the ranker.
  LambdaRankStep(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                 std::vector<float> first_theta, const LabelledQueries& labels);

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  /// Uses only the query of the feedback. Reports no pairs, because none came from clicks.
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;

 private:
  const LabelledQueries& labels_;
  std::array<double, 1> step_{};
};

std::unique_ptr<OnlineRanker> make_lambdarank_step(const RankerRequest& request);
void set_lambdarank_step_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
