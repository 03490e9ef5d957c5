#pragma once

#include <cstdint>
#include <memory>

#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// The clicks by which a document must lead another, over `count` clicks on either.
double toprank_threshold(std::int64_t count, double delta);

std::unique_ptr<OnlineRanker> make_toprank(const RankerRequest& request);
void set_toprank_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
