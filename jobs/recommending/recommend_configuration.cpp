#include "jobs/recommending/recommend_configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/settings/toml_document.h"
#include "core/text/nearest.h"
#include "recommend/recommender_kinds.h"

namespace olrank {
namespace {

/// Calls use(entry) for the entries of the document's [recommend].
template <class Use>
void for_entries(const TomlDocument& document, std::string_view other, Use use) {
  const Schema& schema = RecommendSettings::schema();
  for (const TomlDocument::Table& table : document.tables) {
    if (!other.empty() && table.name == other) continue;
    if (table.name != schema.table) {
      std::vector<std::string> known = {schema.table};
      if (!other.empty()) known.emplace_back(other);
      throw InvalidArgument(fmt::format("{}: 'olrank recommend' has no table '{}'. {}", table.origin,
                                        table.name, did_you_mean(table.name, known)));
    }
    for (const TomlDocument::Entry& entry : table.entries) use(entry);
  }
}

void refuse_unread(const RecommendSettings& settings, std::string_view key, const std::string& origin) {
  if (kind_reads(settings.kind, key)) return;
  throw InvalidArgument(fmt::format("{} does not apply: recommenders of kind {} do not read it.",
                                    setting_subject(origin, key), name_of(settings.kind)));
}

void require_known_kind(const std::string& name, std::string_view origin) {
  const std::vector<std::string> names = recommender_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw InvalidArgument(
        fmt::format("{} {}", setting_subject(origin, "kind"), must_be_one_of(name, names)));
}

}  // namespace

std::span<const SchemaWithDefaults> recommend_tables() {
  static const RecommendSettings defaults;
  static const std::array<SchemaWithDefaults, 1> tables = {{{&RecommendSettings::schema(), &defaults}}};
  return tables;
}

RecommendSettings resolve_recommend_settings(const TomlDocument& document,
                                             std::span<const SettingOverride> overrides,
                                             std::string_view other) {
  const Schema& schema = RecommendSettings::schema();
  RecommendSettings settings;
  // The kind decides the defaults of the rest.
  for_entries(document, other, [&](const TomlDocument::Entry& entry) {
    if (entry.key != "kind") return;
    assign_setting(schema, &settings, entry.key, entry.value, entry.origin);
    require_known_kind(std::string(name_of(settings.kind)), entry.origin);
  });
  for (const SettingOverride& override : overrides) {
    if (override.table != schema.table) {
      throw InvalidArgument(fmt::format("{}: 'olrank recommend' has no table '{}', only [recommend].",
                                        override.origin, override.table));
    }
    if (override.key != "kind") continue;
    assign_setting_text(schema, &settings, override.key, override.text, override.origin);
    require_known_kind(std::string(name_of(settings.kind)), override.origin);
  }
  settings = default_settings(settings.kind);
  for_entries(document, other, [&](const TomlDocument::Entry& entry) {
    if (entry.key == "kind") return;
    const bool known = schema.find(entry.key) != nullptr;
    assign_setting(schema, &settings, entry.key, entry.value, known ? entry.origin : entry.key_origin);
    refuse_unread(settings, entry.key, entry.origin);
  });
  for (const SettingOverride& override : overrides) {
    if (override.key == "kind") continue;
    assign_setting_text(schema, &settings, override.key, override.text, override.origin);
    refuse_unread(settings, override.key, override.origin);
  }
  check_recommend_settings(settings);
  return settings;
}

RecommendSettings resolve_recommend_settings(const std::optional<std::filesystem::path>& file,
                                             std::span<const SettingOverride> overrides) {
  return resolve_recommend_settings(file ? read_toml(*file) : TomlDocument{}, overrides);
}

std::string print_recommend_settings(const RecommendSettings& settings) {
  return print_settings(RecommendSettings::schema(), &settings,
                        [&](const Setting& setting) { return kind_reads(settings.kind, setting.key); });
}

}  // namespace olrank
