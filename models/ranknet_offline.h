#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/online/labelled_queries.h"
#include "models/ranker_request.h"
#include "models/score_model_ranker.h"

namespace olrank {

/// RankNet on all labels: Burges et al., "Learning to rank using gradient descent", ICML 2005. In each of
/// `epochs` passes over the queries, in an order drawn anew, a query brings all its pairs of different
/// grades, or kOfflinePairs of them drawn uniformly where it has more; as many whole queries as bring
/// `batch` pairs are one step of Adam (Kingma, Ba, ICLR 2015; β = 0.9 and 0.999) on their mean
/// cross-entropy. The step is `learning_rate`, times `learning_rate_decay` after each pass; there is no
/// regulariser. One thread; the result depends on the arguments alone. Throws NumericError for scores that
/// are not finite.
std::vector<float> train_offline(const ScoreModel& model, const LabelledQueries& labels,
                                 const TrainerSettings& settings, PhiloxKey key, std::vector<float> theta);

constexpr std::int64_t kOfflinePairs = 200;

/// The linear model of a fold that others are compared with by their cosine: train_offline() at the
/// defaults of `ranknet-offline`, with coins of the fold alone, so that it is the same for every ranker,
/// user and seed.
std::vector<float> offline_linear_theta(const LabelledQueries& labels, std::int64_t features,
                                        std::int64_t fold);

/// A ranker that is trained on true grades when it is made and learns nothing from clicks: what the model
/// could reach. Round 0 of its curve is the trained model.
class RankNetOffline : public ScoreModelRanker {
 public:
  RankNetOffline(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                 std::vector<float> first_theta, const LabelledQueries& labels);

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;

 private:
  // By reference, so that the model is still there while it is trained.
  RankNetOffline(std::vector<float> theta, std::unique_ptr<ScoreModel>&& model,
                 const RankerSettings& settings, TrialKeys keys);

  std::vector<std::int32_t> list_;
};

std::unique_ptr<OnlineRanker> make_ranknet_offline(const RankerRequest& request);
void set_ranknet_offline_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
