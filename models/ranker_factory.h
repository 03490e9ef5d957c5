#pragma once

#include <cstdint>
#include <memory>

#include "core/online/online_ranker.h"
#include "core/online/trial_keys.h"
#include "models/ranker_settings.h"

namespace olrank {

/// What a trial of a ranker may need.
struct RankerPlan {
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;  // of its state, at most
};

/// The ranker that the settings describe, untrained. Throws InvalidArgument for settings that contradict
/// each other, Error for a kind that this version does not have.
std::unique_ptr<OnlineRanker> make_ranker(const RankerSettings& settings, std::int64_t features,
                                          const TrialKeys& keys, std::int64_t cutoff);

/// Worst case over `rounds` rounds that show `cutoff` documents.
RankerPlan plan_ranker(const RankerSettings& settings, std::int64_t features, std::int64_t rounds,
                       std::int64_t cutoff);

}  // namespace olrank
