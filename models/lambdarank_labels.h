#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/online/labelled_queries.h"
#include "models/ranker_request.h"
#include "models/score_model_ranker.h"

namespace olrank {

/// weights[i] is how fast the score of document i should rise, Σ over documents j of another grade of
/// ±σ(−z)·|ΔNDCG|, with z the score of the better document less that of the worse one and ΔNDCG what
/// swapping the two would change: gains 2^grade − 1, ranks by `scores`, the whole list. Burges, "From
/// RankNet to LambdaRank to LambdaMART: an overview", MSR-TR-2010-82, section 4. O(V²); all zero for a
/// query without a relevant document or with one grade only.
void lambdarank_weights(std::span<const double> scores, std::span<const std::uint8_t> grades,
                        Scratch& scratch, std::span<double> weights);

/// LambdaRank on true grades: an upper bound for rankers that learn from clicks. It shows lists by score
/// and takes one gradient step per round on the asked query's grades, θ ← θ + η_t Σ_i weights[i] ∇f(x_i),
/// regardless of the clicks; there is no regulariser.
class LambdaRankLabels : public ScoreModelRanker {
 public:
  /// `labels` has to outlive the ranker.
  LambdaRankLabels(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                   std::vector<float> first_theta, const LabelledQueries& labels);

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  /// Uses only the query of the feedback. Reports no pairs, because none came from clicks.
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;

 private:
  QueryGrades grades_of(const QueryDocs& query) const;

  const LabelledQueries& labels_;
  std::vector<std::int32_t> list_;
  std::array<double, 1> step_{};
};

std::unique_ptr<OnlineRanker> make_lambdarank_labels(const RankerRequest& request);
void set_lambdarank_labels_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
