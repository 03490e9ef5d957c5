#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/protocol.h"
#include "core/settings/setting_sources.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// A setting that its ranker ignores is an error, or is dropped.
enum class IgnoredSettings { kRefuse, kDrop };

/// The rankers of the file, or one for each kind that the overrides name: defaults, then the file, then the
/// overrides. An override of all rankers goes to those that have the setting. Throws InvalidArgument for a
/// setting that its ranker ignores, and for an override that no ranker has; in a file, a setting may have
/// its default, as earlier versions wrote it.
std::vector<RankerSettings> resolve_rankers(const TomlDocument& document,
                                            std::span<const SettingOverride> overrides,
                                            ProtocolName protocol,
                                            IgnoredSettings ignored = IgnoredSettings::kRefuse);

/// Throws InvalidArgument for the first override that the ranker ignores.
void refuse_ignored(const RankerSettings& ranker, std::span<const SettingOverride> overrides);

/// Whether the override is of this ranker.
bool applies_to(const SettingOverride& override, const RankerSettings& ranker);

}  // namespace olrank
