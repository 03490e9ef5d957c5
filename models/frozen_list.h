#pragma once

#include "core/explore/exploration_settings.h"
#include "core/online/frozen_ranker.h"
#include "core/random/rng_stream.h"

namespace olrank {

/// The list of a frozen ranker that knows certain orders: `ranking` has by_score and orders already. `key`
/// is of Purpose::kList.
void make_frozen_list(const ExplorationSettings& settings, PhiloxKey key, const RankingTask& task,
                      Ranking& ranking);

}  // namespace olrank
