#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/online/online_ranker.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// PairRank, a linear ranker with certain orders: Jia, Wang, Guo, Wang, "PairRank: Online pairwise learning
/// to rank by divide-and-conquer", WWW 2021. Pairwise logistic regression over all preferences so far; the
/// confidence of an order follows from the covariance of their feature differences.
std::unique_ptr<OnlineRanker> make_pairrank(const RankerRequest& request);

void set_pairrank_defaults(RankerSettings& settings, const DefaultsContext& context);

/// P²LinRank, linear rankers that vote: Jia, Wang, "Scalable exploration for neural online learning to rank
/// with perturbed feedback", SIGIR 2022, with a linear model. An order is certain when all members agree;
/// the ensemble's score is the mean of its members'.
std::unique_ptr<OnlineRanker> make_p2linrank(const RankerRequest& request);

void set_p2linrank_defaults(RankerSettings& settings, const DefaultsContext& context);

/// A linear model, or an ensemble, that is fitted to the whole history.
std::unique_ptr<ModelLearner> make_linear_learner(std::int64_t features, const RankerSettings& settings,
                                                  const TrialKeys& keys,
                                                  const std::optional<EnsembleSpec>& ensemble);

}  // namespace olrank
