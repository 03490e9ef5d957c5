#include "jobs/settings/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/fair/exposure.h"
#include "core/io/folder.h"
#include "core/metrics/metric_options.h"
#include "core/runtime/device.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "models/ranker_factory.h"

namespace olrank {
namespace {

const std::string kRankerTable = "ranker";
const std::string kUserTable = "user";
const std::string kStudyTable = "study";

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const auto& [schema, defaults] : configuration_tables()) names.push_back(schema->table);
  names.push_back(kSweepTable);
  return names;
}

const Schema& schema_of(const std::string& table, std::string_view origin) {
  for (const auto& [schema, defaults] : configuration_tables()) {
    if (schema->table == table) return *schema;
  }
  throw_error<InvalidArgument>("{}: Unknown table '{}'. {}", origin, table,
                               did_you_mean(table, table_names()));
}

void check_table(const TomlDocument::Table& table) {
  if (table.name.empty()) {
    const auto& first = table.entries.front();
    throw_error<InvalidArgument>("{}: '{}' is not in a table; put it under one of {}.", first.origin,
                                 first.key, joined(table_names(), " or "));
  }
  if (is_sweep_table(table)) return;  // read later, when the rankers are known
  const Schema& schema = schema_of(table.name, table.origin);
  if (schema.repeated != table.repeated) {
    const std::string_view open = schema.repeated ? "[[" : "[";
    const std::string_view close = schema.repeated ? "]]" : "]";
    throw_error<InvalidArgument>("{0}: Write this table as {1}{2}{3}.", table.origin, open, table.name,
                                 close);
  }
}

/// The protocol decides the defaults of other tables, so it is read first.
ProtocolName chosen_protocol(const SettingSources& sources) {
  ProtocolSettings chosen;
  sources.apply(ProtocolSettings::schema(), &chosen);
  return chosen.name;
}

/// None without a [study] in the file or on the command line.
std::optional<StudySettings> resolve_study(const TomlDocument& document,
                                           std::span<const SettingOverride> overrides,
                                           const SettingSources& sources) {
  const auto& tables = document.tables;
  if (std::ranges::find(tables, kStudyTable, &TomlDocument::Table::name) == tables.end() &&
      std::ranges::find(overrides, kStudyTable, &SettingOverride::table) == overrides.end())
    return std::nullopt;
  StudySettings study;
  sources.apply(StudySettings::schema(), &study);
  return study;
}

UserSettings resolve_user(const TomlDocument::Table& table, const ClickSettings& clicks) {
  UserSettings user = UserSettings::defaults(clicks);
  SettingSources::apply_table(UserSettings::schema(), &user, table);
  return user;
}

void check_folder_name(std::string_view whose, const std::string& name) {
  if (is_folder_name(name)) return;
  throw_error<InvalidArgument>(
      "The {}'s name '{}' must be a valid folder name: letters, digits and - _ . + =, without a leading "
      "dot.",
      whose, name);
}

void check_names(const std::vector<RankerSettings>& rankers, std::span<const SettingOverride> overrides) {
  std::vector<std::string> names;
  for (const RankerSettings& ranker : rankers) {
    check_folder_name(kRankerTable, ranker.name);
    if (std::find(names.begin(), names.end(), ranker.name) != names.end()) {
      throw_error<InvalidArgument>("Two rankers are called '{}'; give each [[ranker]] a unique name.",
                                   ranker.name);
    }
    names.push_back(ranker.name);
  }
  for (const SettingOverride& override : overrides) {
    if (override.ranker.empty() || std::find(names.begin(), names.end(), override.ranker) != names.end())
      continue;
    throw_error<InvalidArgument>("{}: Unknown ranker '{}'. {}", override.origin, override.ranker,
                                 did_you_mean(override.ranker, names));
  }
}

/// Refuses keys that are both swept and set on the command line.
void check_sweep(const std::vector<SweepAxis>& sweep, const std::vector<RankerSettings>& rankers,
                 std::span<const SettingOverride> overrides) {
  for (const RankerSettings& ranker : rankers) {
    for (const SweepAxis& axis : axes_of(sweep, ranker)) {
      for (const SettingOverride& override : overrides) {
        if (!applies_to(override, ranker) || override.key != axis.key) continue;
        throw_error<InvalidArgument>(
            "{}: The file sweeps '{}' in ranker '{}'; remove the flag or the sweep.", override.origin,
            axis.key, ranker.name);
      }
    }
  }
}

/// Rankers that are to be fair need groups, and templates have a most length.
void check_fairness(const RankerSettings& ranker, const GroupSettings& groups, std::int64_t cutoff) {
  const bool fair = ranker.fair.fair != Fairness::kNone;
  if (!groups.are_set() && (fair || row_of(ranker.kind).needs_groups)) {
    throw_error<InvalidArgument>("Ranker '{}' {}, so it needs groups: set a feature or a file in [groups].",
                                 ranker.name,
                                 fair ? fmt::format("has fair = \"{}\"", name_of(ranker.fair.fair))
                                      : fmt::format("is of the kind \"{}\"", name_of(ranker.kind)));
  }
  if (ranker.fair.fair == Fairness::kFairExp && cutoff > TemplateTable::kMostPlaces) {
    throw_error<InvalidArgument>(
        "Ranker '{}' has fair = \"fairexp\", which compares all templates of {} ranks: use a cutoff of at "
        "most {}, or fair = \"fairco\".",
        ranker.name, cutoff, TemplateTable::kMostPlaces);
  }
}

template <class T>
void check_distinct(const std::vector<T>& items, std::string_view what) {
  if (items.empty()) throw_error<InvalidArgument>("{} is empty; it needs at least one value.", what);
  if (std::set<T>(items.begin(), items.end()).size() != items.size()) {
    throw_error<InvalidArgument>("{} contains a duplicate, which would repeat a trial.", what);
  }
}

}  // namespace

SettingOverride parse_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string path = text.substr(0, equals);
  const std::size_t first_dot = path.find('.');
  if (equals == std::string::npos || first_dot == std::string::npos) {
    throw_error<InvalidArgument>("--set {}: Expected TABLE.KEY=VALUE, such as ranker.alpha=0.2.", text);
  }
  SettingOverride override;
  override.table = path.substr(0, first_dot);
  override.text = text.substr(equals + 1);
  override.origin = "--set " + path;
  if (override.table == kUserTable) {
    throw_error<InvalidArgument>(
        "{}: Users can be described only in the configuration file; put the key under the user's [[{}]] "
        "there.",
        override.origin, kUserTable);
  }
  if (override.table == kSweepTable) {
    throw_error<InvalidArgument>(
        "{}: Sweeps can be described only in the configuration file; put the values under its [{}] there.",
        override.origin, kSweepTable);
  }
  const std::size_t last_dot = path.rfind('.');
  override.key = path.substr(last_dot + 1);
  if (last_dot != first_dot) override.ranker = path.substr(first_dot + 1, last_dot - first_dot - 1);
  if (!override.ranker.empty() && override.table != kRankerTable) {
    throw_error<InvalidArgument>("{}: Only ranker.NAME.KEY may have three parts.", override.origin);
  }
  return override;
}

Configuration resolve_configuration(const std::optional<std::filesystem::path>& file,
                                    std::span<const SettingOverride> overrides, IgnoredSettings ignored) {
  return resolve_configuration(file ? read_toml(*file) : TomlDocument{}, overrides, ignored);
}

Configuration resolve_configuration(TomlDocument document, std::span<const SettingOverride> given,
                                    IgnoredSettings ignored) {
  std::vector<SettingOverride> overrides(given.begin(), given.end());
  select_rankers(document, overrides);
  for (const auto& table : document.tables) check_table(table);
  for (const auto& override : overrides) schema_of(override.table, override.origin);

  const SettingSources sources(document, overrides);
  const ProtocolName protocol = chosen_protocol(sources);
  Configuration configuration;
  configuration.protocol = ProtocolSettings::defaults(protocol);
  configuration.clicks = ClickSettings::defaults(protocol);
  sources.apply(DataSettings::schema(), &configuration.data);
  sources.apply(ProtocolSettings::schema(), &configuration.protocol);
  sources.apply(ClickSettings::schema(), &configuration.clicks);
  sources.apply(GroupSettings::schema(), &configuration.groups);
  sources.apply(RunSettings::schema(), &configuration.run);
  sources.apply(SearchSettings::schema(), &configuration.search);
  configuration.study = resolve_study(document, overrides, sources);

  for (const auto& table : document.tables) {
    if (table.name == kUserTable) configuration.users.push_back(resolve_user(table, configuration.clicks));
  }
  configuration.rankers = resolve_rankers(document, overrides, protocol, ignored);

  check_names(configuration.rankers, overrides);
  configuration.sweep = read_sweep(document, configuration.rankers);
  check_sweep(configuration.sweep, configuration.rankers, overrides);
  check_distinct(configuration.data.folds, "data.folds");
  check_distinct(configuration.protocol.seeds, "protocol.seeds");
  check_distinct(configuration.clicks.models, "clicks.models");
  parse_metrics(configuration.protocol.metrics, "protocol.metrics");
  for (const UserSettings& user : configuration.users) check_folder_name(kUserTable, user.name);
  check_users(configuration.clicks, configuration.users);
  configuration.groups.check(configuration.protocol.cutoff);
  for (const RankerSettings& ranker : configuration.rankers)
    check_fairness(ranker, configuration.groups, configuration.protocol.cutoff);
  parse_device(configuration.run.device);
  return configuration;
}

void refuse_study(std::string_view command, const Configuration& configuration) {
  if (!configuration.study) return;
  throw_error<InvalidArgument>("'olrank {}' does not support [{}]; use 'olrank bench covariance'.", command,
                               kStudyTable);
}

void refuse_search(std::string_view command, const Configuration& configuration) {
  if (!configuration.search.is_random()) return;
  throw_error<InvalidArgument>("'olrank {}' does not support [{}]; use 'olrank tune'.", command,
                               SearchSettings::schema().table);
}

std::string print_configuration(const Configuration& configuration) {
  std::string text = print_settings(DataSettings::schema(), &configuration.data);
  text += "\n" + print_settings(ProtocolSettings::schema(), &configuration.protocol);
  text += "\n" + print_settings(ClickSettings::schema(), &configuration.clicks);
  if (configuration.groups.are_set())
    text += "\n" + print_settings(GroupSettings::schema(), &configuration.groups);
  for (const UserSettings& user : configuration.users) {
    text += "\n" + print_settings(UserSettings::schema(), &user);
  }
  for (const RankerSettings& ranker : configuration.rankers) {
    text += "\n" + print_settings(RankerSettings::schema(), &ranker, [&](const Setting& setting) {
              return !why_ignored(ranker, setting.key);
            });
  }
  text += "\n" + print_settings(RunSettings::schema(), &configuration.run);
  text += print_sweep(configuration.sweep);
  if (configuration.search.is_random())
    text += "\n" + print_settings(SearchSettings::schema(), &configuration.search);
  if (configuration.study) text += "\n" + print_settings(StudySettings::schema(), &*configuration.study);
  return text;
}

std::span<const SchemaWithDefaults> configuration_tables() {
  static const Configuration defaults;
  static const RankerSettings ranker = [] {
    // The kind that uses most of the settings shows their defaults.
    auto most = RankerSettings::defaults(RankerKind::kOlRankNet, ProtocolName::kRecommended);
    most.kind = RankerSettings::default_kind(ProtocolName::kRecommended);
    return most;
  }();
  static const UserSettings user = UserSettings::defaults(defaults.clicks);
  static const StudySettings study;
  static const std::array<SchemaWithDefaults, 9> tables = {{
      {&DataSettings::schema(), &defaults.data},
      {&ProtocolSettings::schema(), &defaults.protocol},
      {&ClickSettings::schema(), &defaults.clicks},
      {&GroupSettings::schema(), &defaults.groups},
      {&UserSettings::schema(), &user},
      {&RankerSettings::schema(), &ranker},
      {&RunSettings::schema(), &defaults.run},
      {&SearchSettings::schema(), &defaults.search},
      {&StudySettings::schema(), &study},
  }};
  return tables;
}

}  // namespace olrank
