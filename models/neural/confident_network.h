#pragma once

#include <memory>

#include "core/online/online_ranker.h"
#include "models/skeleton/ranker_request.h"

namespace olrank {

/// olRankNet, and olLambdaRank by the kind in the settings, ReLU networks with certain orders: Jia, Wang,
/// "Learning neural ranking models online from implicit user feedback", WWW 2022. The confidence of an
/// order is the Mahalanobis width of the difference of two tangent gradients, under the covariance of those
/// of all observed pairs.
std::unique_ptr<OnlineRanker> make_confident_network(const RankerRequest& request);

void set_olranknet_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
