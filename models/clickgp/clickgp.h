#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/clickgp/click_regression.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// The features of the models that run side by side; those of the last one begin with those of the others.
std::vector<ClickFeatures> click_features_of(const RankerSettings& settings, std::int64_t features,
                                             const std::shared_ptr<const ClickStart>& start = {});
/// The bytes that `docs` remembered documents of `queries` queries take with all click models.
double clickgp_bytes(const RankerSettings& settings, std::int64_t features, double docs, double queries);

std::unique_ptr<OnlineRanker> make_clickgp(const RankerRequest& request);
void set_clickgp_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
