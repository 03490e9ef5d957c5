#pragma once

#include <memory>

#include "core/online/online_ranker.h"
#include "models/skeleton/ranker_request.h"

namespace olrank {

/// PairRank, a linear ranker with certain orders: Jia, Wang, Guo, Wang, "PairRank: Online pairwise learning
/// to rank by divide-and-conquer", WWW 2021. Pairwise logistic regression over all preferences so far; the
/// confidence of an order follows from the covariance of their feature differences.
std::unique_ptr<OnlineRanker> make_pairrank(const RankerRequest& request);

void set_pairrank_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
