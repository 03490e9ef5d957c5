#pragma once

#include <memory>

#include "core/online/online_ranker.h"
#include "models/skeleton/ranker_request.h"

namespace olrank {

/// P²NeurRank, networks that vote: Jia, Wang, "Scalable exploration for neural online learning to rank with
/// perturbed feedback", SIGIR 2022. Each member starts from its own θ₀; an order is certain when all
/// members agree; the ensemble's score is the mean of its members'.
std::unique_ptr<OnlineRanker> make_p2neurrank(const RankerRequest& request);

void set_p2neurrank_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
