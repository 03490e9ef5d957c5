#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "core/settings/reference_page.h"
#include "jobs/settings/ranker_tables.h"
#include "recommend/recommend_settings.h"

namespace olrank {

/// The table [recommend] with its defaults.
std::span<const SchemaWithDefaults> recommend_tables();

/// The kind's defaults, then the file, then the overrides. Throws InvalidArgument with the location of the
/// first mistake, of which a setting that the kind does not read is one.
RecommendSettings resolve_recommend_settings(const std::optional<std::filesystem::path>& file,
                                             std::span<const SettingOverride> overrides);
/// Resolves the settings of a document; tables called `other` are left to the caller.
RecommendSettings resolve_recommend_settings(const TomlDocument& document,
                                             std::span<const SettingOverride> overrides,
                                             std::string_view other = {});

/// As TOML that reads back to the same settings; without those that the kind does not read.
std::string print_recommend_settings(const RecommendSettings& settings);

}  // namespace olrank
