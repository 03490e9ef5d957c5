#include "jobs/recommending/recommend_configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text/nearest.h"
#include "recommend/recommender_kinds.h"

namespace olrank {
namespace {

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
  const SettingSources sources(document, overrides);
  std::vector<std::string> tables = {schema.table};
  if (!other.empty()) tables.emplace_back(other);
  sources.require_tables(tables, "olrank recommend");
  RecommendSettings settings;
  // The kind decides the defaults of the rest.
  std::string origin_of_kind;
  sources.apply(schema, &settings, [&](const std::string& key, const std::string& origin) {
    if (key == "kind") origin_of_kind = origin;
    return key == "kind";
  });
  if (!origin_of_kind.empty()) require_known_kind(std::string(name_of(settings.kind)), origin_of_kind);
  settings = default_settings(settings.kind);
  std::vector<std::pair<std::string, std::string>> given;
  sources.apply(schema, &settings, [&](const std::string& key, const std::string& origin) {
    if (key != "kind") given.emplace_back(key, origin);
    return key != "kind";
  });
  for (const auto& [key, origin] : given) refuse_unread(settings, key, origin);
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
