#pragma once

#include <memory>

#include "models/skeleton/ranker_settings.h"

namespace olrank {

std::unique_ptr<OnlineRanker> make_fairco(const RankerRequest& request);
void set_fairco_defaults(RankerSettings& settings, const DefaultsContext& context);

}  // namespace olrank
