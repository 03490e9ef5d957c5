#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/ranks/rank_group.h"
#include "core/ranks/rank_place.h"

namespace olrank {

/// What to do if a rank is lost and the calling thread has not noticed within a few seconds, as it waits
/// for a device: it has to end the process. Called on another thread.
using WhenRankLost = std::function<void(const std::string& sentence)>;

/// Joins the ranks at the place's address: LibTorch's Gloo over TCP. Waits until all are there. A rank
/// whose connections break is lost at once, one that stands still after a quarter of a minute. Throws
/// RankLost, and InvalidArgument if this build has no Gloo.
std::unique_ptr<RankTransport> join_ranks(const RankPlace& place, const WhenRankLost& when_lost);

}  // namespace olrank
