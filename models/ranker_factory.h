#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/online/online_ranker.h"
#include "models/neural/device_ranker.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// The ranker that the settings describe, before round 1. Throws InvalidArgument for settings that
/// contradict each other, and for a kind that learns from labels where there are none.
std::unique_ptr<OnlineRanker> make_ranker(const RankerSettings& settings, std::int64_t features,
                                          const TrialKeys& keys, std::int64_t cutoff,
                                          const RankerDependencies& dependencies = {});

/// Throws what make_ranker() would, for any number of features and before any data is there, and refuses
/// steps above the largest stable one.
void check_ranker(const RankerSettings& settings, std::int64_t cutoff);

/// Throws for settings that need dense features.
void check_sparse(const RankerSettings& settings);

/// Whether rankers of a kind have a setting; true for a key without a rule.
bool kind_has(RankerKind kind, std::string_view key);

/// Why a ranker with these settings would ignore one of them, to complete "--width does not apply to ranker
/// 'a': "; none if the setting counts. Says what to change.
std::optional<std::string> why_ignored(const RankerSettings& settings, std::string_view key);

}  // namespace olrank
