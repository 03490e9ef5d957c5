#include "jobs/settings/train_configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/error.h"
#include "core/settings/toml_document.h"
#include "core/text/nearest.h"

namespace olrank {
namespace {

/// Where a setting of [train] was given.
struct Given {
  std::string key;
  std::string origin;
};

const Schema& schema_of(const std::string& table, std::string_view origin) {
  std::vector<std::string> names;
  for (const auto& [schema, defaults] : train_tables()) {
    if (schema->table == table) return *schema;
    names.push_back(schema->table);
  }
  throw InvalidArgument(
      fmt::format("{}: 'olrank train' has no table '{}'. {}", origin, table, did_you_mean(table, names)));
}

void* object_of(TrainConfiguration& configuration, const Schema& schema) {
  if (&schema == &DataSettings::schema()) return &configuration.data;
  return &configuration.train;
}

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
  TrainConfiguration configuration;
  std::vector<Given> given;
  const auto note = [&](const Schema& schema, const std::string& key, const std::string& origin) {
    if (&schema == &LabelSettings::schema()) given.push_back({key, origin});
  };
  const TomlDocument document = file ? read_toml(*file) : TomlDocument{};
  for (const TomlDocument::Table& table : document.tables) {
    const Schema& schema = schema_of(table.name, table.origin);
    for (const TomlDocument::Entry& entry : table.entries) {
      const bool known = schema.find(entry.key) != nullptr;
      assign_setting(schema, object_of(configuration, schema), entry.key, entry.value,
                     known ? entry.origin : entry.key_origin);
      note(schema, entry.key, entry.origin);
    }
  }
  for (const SettingOverride& override : overrides) {
    const Schema& schema = schema_of(override.table, override.origin);
    assign_setting_text(schema, object_of(configuration, schema), override.key, override.text,
                        override.origin);
    note(schema, override.key, override.origin);
  }
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
