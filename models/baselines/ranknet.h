#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/online/click_model.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

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

std::unique_ptr<OnlineRanker> make_ranknet_offline(const RankerRequest& request);
void set_ranknet_offline_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
