#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/data_settings.h"
#include "core/fair/dataset_groups.h"
#include "core/settings/schema.h"
#include "core/settings/toml_document.h"
#include "jobs/settings/run_settings.h"
#include "jobs/settings/train_configuration.h"
#include "models/skeleton/ranker_settings.h"
#include "sim/trial_settings.h"

namespace olrank {

struct Configuration {
  DataSettings data;
  ProtocolSettings protocol;
  ClickSettings clicks;
  GroupSettings groups;             // off unless set
  std::vector<UserSettings> users;  // in addition to the built-in ones
  std::vector<RankerSettings> rankers;
  RunSettings run;
  std::vector<SweepAxis> sweep;        // the values that tuning tries; none for a run
  SearchSettings search;               // only for `olrank tune`
  std::optional<StudySettings> study;  // only for `olrank bench covariance`
};

/// Parses "TABLE.KEY=VALUE" or "ranker.NAME.KEY=VALUE".
SettingOverride parse_override(const std::string& text);

/// Applies the defaults of protocol and kind, then the file, then the overrides. Throws InvalidArgument
/// with the location of the first mistake, of which a setting that its ranker ignores is one.
Configuration resolve_configuration(const std::optional<std::filesystem::path>& file,
                                    std::span<const SettingOverride> overrides,
                                    IgnoredSettings ignored = IgnoredSettings::kRefuse);

/// Resolves the configuration of a document that is there already.
Configuration resolve_configuration(TomlDocument document, std::span<const SettingOverride> overrides,
                                    IgnoredSettings ignored = IgnoredSettings::kRefuse);

/// Throws InvalidArgument if the configuration has a [study], which `command` does not support.
void refuse_study(std::string_view command, const Configuration& configuration);

/// Throws InvalidArgument if the configuration has a [search], which `command` does not support.
void refuse_search(std::string_view command, const Configuration& configuration);

/// The whole configuration as TOML that reads back to the same configuration; without settings that their
/// rankers ignore.
std::string print_configuration(const Configuration& configuration);

/// The tables in the order of the file, with their defaults.
std::span<const SchemaWithDefaults> configuration_tables();

}  // namespace olrank
