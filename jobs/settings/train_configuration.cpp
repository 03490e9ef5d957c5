#include "jobs/settings/train_configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/error.h"

namespace olrank {
namespace {

/// Where a setting of [train] was given.
struct Given {
  std::string key;
  std::string origin;
};

void check(const TrainConfiguration& configuration, const std::vector<Given>& given) {
  for (const auto& [key, origin] : given) {
    if (const auto why = why_ignored(configuration.train, key)) {
      throw InvalidArgument(fmt::format("{} does not apply: {}.", setting_subject(origin, key), *why));
    }
  }
  check_label_settings(configuration.train);
  const auto& seeds = configuration.train.seeds;
  const auto& folds = configuration.data.folds;
  if (seeds.empty() || folds.empty())
    throw InvalidArgument("train.seeds and data.folds need at least one value each.");
  if (std::set(seeds.begin(), seeds.end()).size() != seeds.size() ||
      std::set(folds.begin(), folds.end()).size() != folds.size()) {
    throw InvalidArgument(
        "train.seeds or data.folds contains a duplicate, which would train a model twice.");
  }
}

}  // namespace

std::span<const SchemaWithDefaults> train_tables() {
  static const TrainConfiguration defaults;
  static const std::array<SchemaWithDefaults, 2> tables = {
      {{&DataSettings::schema(), &defaults.data}, {&LabelSettings::schema(), &defaults.train}}};
  return tables;
}

TrainConfiguration resolve_train_configuration(const std::optional<std::filesystem::path>& file,
                                               std::span<const SettingOverride> overrides) {
  const TomlDocument document = file ? read_toml(*file) : TomlDocument{};
  const SettingSources sources(document, overrides);
  sources.require_tables(std::array{DataSettings::schema().table, LabelSettings::schema().table},
                         "olrank train");
  TrainConfiguration configuration;
  std::vector<Given> given;
  sources.apply(DataSettings::schema(), &configuration.data);
  sources.apply(LabelSettings::schema(), &configuration.train,
                [&](const std::string& key, const std::string& origin) {
                  given.push_back({key, origin});
                  return true;
                });
  check(configuration, given);
  return configuration;
}

std::string print_label_settings(const LabelSettings& settings) {
  return print_settings(LabelSettings::schema(), &settings, [&](const Setting& setting) {
    // No bound has no number.
    const bool unbounded = setting.key == "radius" && settings.radius == 0.0;
    return !unbounded && !why_ignored(settings, setting.key);
  });
}

std::string print_train_configuration(const TrainConfiguration& configuration) {
  return print_settings(DataSettings::schema(), &configuration.data) + "\n" +
         print_label_settings(configuration.train);
}

}  // namespace olrank
