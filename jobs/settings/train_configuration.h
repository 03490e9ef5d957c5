#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/data_settings.h"
#include "core/protocol.h"
#include "core/settings/schema.h"
#include "core/settings/setting_sources.h"
#include "models/labels/label_settings.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// A setting that its ranker ignores is an error, or is dropped.
enum class IgnoredSettings { kRefuse, kDrop };

/// If `--ranker` has names of the file's rankers alone, their tables and sweeps stay, and the flag goes.
void select_rankers(TomlDocument& document, std::vector<SettingOverride>& overrides);

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

bool applies_to(const SettingOverride& override, const RankerSettings& ranker);

/// All settings of `olrank train`: the tables [data] and [train].
struct TrainConfiguration {
  DataSettings data;
  LabelSettings train;
};

/// The tables with their defaults.
std::span<const SchemaWithDefaults> train_tables();

/// Applies the file, then the overrides. Throws InvalidArgument with the location of the first mistake, of
/// which a setting that counts for nothing with the others is one.
TrainConfiguration resolve_train_configuration(const std::optional<std::filesystem::path>& file,
                                               std::span<const SettingOverride> overrides);

/// Writes it as TOML that reads back to the same configuration; without settings that count for nothing.
std::string print_train_configuration(const TrainConfiguration& configuration);
/// The [train] part of that.
std::string print_label_settings(const LabelSettings& settings);

}  // namespace olrank
