#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/online/labelled_queries.h"
#include "models/skeleton/ranker_request.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {

/// RankNet on all labels: Burges et al., "Learning to rank using gradient descent", ICML 2005, by the
/// trainer of `olrank train`: `epochs` passes of Adam over the queries, each in a new random order, on the
/// mean over `batch` queries of the mean cross-entropy of their pairs. The step is `learning_rate`, times
/// `learning_rate_decay` after each pass; there is no regulariser. One thread; the result depends on the
/// arguments alone. Throws NumericError for losses that are not finite.
std::vector<float> train_offline(const ScoreModel& model, const LabelledQueries& labels,
                                 const RankerSettings& settings, PhiloxKey key, std::vector<float> theta);

/// The linear model of a fold that the cosine of other models refers to: train_offline() with the defaults
/// of `ranknet-offline` and coins of the fold only, so that it is the same for every ranker, user and seed.
std::vector<float> offline_linear_theta(const LabelledQueries& labels, std::int64_t features,
                                        std::int64_t fold);

/// A ranker that is trained on true grades when it is made and learns nothing from clicks: an upper bound
/// for the model. Round 0 of its curve is the trained model.
class RankNetOffline : public ScoreModelRanker {
 public:
  RankNetOffline(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                 std::vector<float> first_theta, const LabelledQueries& labels);

  RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) override;
  LearnReport learn(RoundContext& context, const Feedback& feedback) override;

 private:
  // Takes the model by reference, so that it still exists during training.
  RankNetOffline(std::vector<float> theta, std::unique_ptr<ScoreModel>&& model,
                 const RankerSettings& settings, TrialKeys keys);

  std::vector<std::int32_t> list_;
};

std::unique_ptr<OnlineRanker> make_ranknet_offline(const RankerRequest& request);
void set_ranknet_offline_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
