#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/run_settings.h"
#include "apps/study_settings.h"
#include "apps/sweep_axis.h"
#include "core/data/data_settings.h"
#include "core/settings/reference_page.h"
#include "models/ranker_settings.h"
#include "sim/click_settings.h"
#include "sim/protocol_settings.h"
#include "sim/user_settings.h"

namespace olrank {

/// Everything a user can set about an experiment.
struct Configuration {
  DataSettings data;
  ProtocolSettings protocol;
  ClickSettings clicks;
  std::vector<UserSettings> users;  // besides the built-in ones
  std::vector<RankerSettings> rankers;
  RunSettings run;
  std::vector<SweepAxis> sweep;        // what tuning tries; a run has none
  std::optional<StudySettings> study;  // what a study compares; others have none
};

/// A setting said on the command line: it wins over the file, and a later one over an earlier one.
struct SettingOverride {
  std::string table;
  std::string ranker;  // only this one, by name; empty speaks of all
  std::string key;
  std::string text;
  std::string origin;  // "--alpha", "--set ranker.alpha"
};

/// Reads "TABLE.KEY=VALUE" or "ranker.NAME.KEY=VALUE".
SettingOverride parse_override(const std::string& text);

/// Defaults of protocol and kind, then the file, then the overrides. Throws InvalidArgument with the place
/// of the first mistake.
Configuration resolve_configuration(const std::optional<std::filesystem::path>& file,
                                    std::span<const SettingOverride> overrides);

/// Throws InvalidArgument where the configuration has a study, which `command` does not carry out.
void refuse_study(std::string_view command, const Configuration& configuration);

/// The whole configuration as TOML; read back, it gives itself.
std::string print_configuration(const Configuration& configuration);

/// The tables in the order of the file, with their defaults.
std::span<const SchemaWithDefaults> configuration_tables();

}  // namespace olrank
