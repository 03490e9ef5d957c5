#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "jobs/settings/configuration.h"

namespace olrank {

/// The configuration that a folder of results records; none without a config.toml.
std::optional<Configuration> recorded_configuration(const std::filesystem::path& out);

/// How this configuration's data differs from that of the results in its folder: "data.source is 'b', and
/// was 'a'".
std::string data_difference(const Configuration& configuration);

/// The recorded experiment and what a run adds to it: rounds, seeds, folds, users, rankers. Throws
/// InvalidArgument if the two differ in anything else, and if trials of different lengths would stand side
/// by side: a run with more rounds has to have all recorded trials.
Configuration extended_experiment(const Configuration& recorded, const Configuration& run);

/// Returns what `olrank run --resume` continues if the command line names no file, data or rankers: the
/// configuration in its folder, overridden. With rankers, these are added to the folder's.
Configuration continued_configuration(std::span<const SettingOverride> overrides);

/// Whether the overrides leave everything but the folder to continued_configuration().
bool names_only_folder(std::span<const SettingOverride> overrides);

}  // namespace olrank
