#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/feedback/preference_pairs.h"
#include "core/online/click_model.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "models/skeleton/ranker_settings.h"
#include "models/skeleton/score_model_ranker.h"

namespace olrank {

/// RankNet on clicks: Burges et al., "Learning to rank using gradient descent", ICML 2005. One step of
/// stochastic gradient descent on the pairs of each round, θ ← θ + η_t Σ σ(−z)(∇f(x_w) − ∇f(x_l)) with
/// z = f(x_w) − f(x_l). There is no regulariser: a round's pairs are only a sample of the loss, and
/// the prior term belongs to methods that keep the whole history. Shows greedy or ε-greedy lists.
class RankNetRanker : public ScoreModelRanker {
 public:
  RankNetRanker(std::unique_ptr<ScoreModel> model, const RankerSettings& settings, TrialKeys keys,
                std::vector<float> first_theta = {});

  LearnReport learn(RoundContext& context, const Feedback& feedback) override;

 private:
  ScoreLists lists() const override;

  PairSettings feedback_;
  double epsilon_;  // 0: greedy
  PhiloxKey list_key_;
  PhiloxKey batch_key_;
  std::vector<PreferencePair> pairs_;
  LossPairs loss_;
  std::array<double, 1> step_{};
};

std::unique_ptr<OnlineRanker> make_ranknet(const RankerRequest& request);
void set_ranknet_defaults(RankerSettings& settings, const DefaultsContext& context);

/// A list that takes, at each rank, with probability ε a uniformly random remaining document and otherwise
/// the best remaining one. `best_first` is the order by score; the coins lie at (round, 0, rank).
/// `propensity` receives that of each rank, as in RankedList. O(V).
void epsilon_greedy_list(std::span<const std::int32_t> best_first, double epsilon, PhiloxKey key,
                         std::uint32_t round, Scratch& scratch, std::span<std::int32_t> list,
                         std::span<double> propensity);

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
