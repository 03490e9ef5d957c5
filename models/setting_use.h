#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// Whether rankers of a kind have a setting; true for a key without a rule.
bool kind_has(RankerKind kind, std::string_view key);

/// Why a ranker with these settings would ignore one of them, to complete "--width does not apply to ranker
/// 'a': "; none if the setting counts. Says what to change.
std::optional<std::string> why_ignored(const RankerSettings& settings, std::string_view key);

}  // namespace olrank
