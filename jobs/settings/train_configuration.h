#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "core/data/data_settings.h"
#include "core/settings/reference_page.h"
#include "jobs/settings/ranker_tables.h"
#include "models/labels/label_settings.h"

namespace olrank {

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

/// As TOML that reads back to the same configuration; without settings that count for nothing.
std::string print_train_configuration(const TrainConfiguration& configuration);
/// The [train] part of that.
std::string print_label_settings(const LabelSettings& settings);

}  // namespace olrank
