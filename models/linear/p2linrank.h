#pragma once

#include <memory>

#include "core/online/online_ranker.h"
#include "models/skeleton/ranker_request.h"

namespace olrank {

/// P²LinRank, linear rankers that vote: Jia, Wang, "Scalable exploration for neural online learning to rank
/// with perturbed feedback", SIGIR 2022, with a linear model. An order is certain when all members agree;
/// the ensemble's score is the mean of its members'.
std::unique_ptr<OnlineRanker> make_p2linrank(const RankerRequest& request);

void set_p2linrank_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
