#include "jobs/settings/train_configuration.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/saved_trial.h"
#include "models/ranker_factory.h"

namespace olrank {
namespace {

/// A setting of [train], and where it was given.
using Given = std::pair<std::string, std::string>;

void check(const TrainConfiguration& configuration, const std::vector<Given>& given) {
  for (const auto& [key, origin] : given) {
    if (const auto why = why_ignored(configuration.train, key)) {
      throw_error<InvalidArgument>("{} does not apply: {}.", setting_subject(origin, key), *why);
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

constexpr std::string_view kKind = "kind";

bool is_kind_of_all(const SettingOverride& override) {
  return override.table == RankerSettings::schema().table && override.ranker.empty() &&
         override.key == kKind;
}

[[noreturn]] void refuse(std::string_view origin, std::string_view key, const RankerSettings& ranker,
                         const std::string& reason) {
  throw_error<InvalidArgument>("{} does not apply to ranker '{}': {}.", setting_subject(origin, key),
                               ranker.name, reason);
}

/// One ranker: its table, if the file has one, and the overrides of it.
class RankerSource {
 public:
  RankerSource(const TomlDocument::Table* table, std::span<const SettingOverride> overrides,
               ProtocolName protocol)
      : table_(table), overrides_(overrides), protocol_(protocol) {}

  RankerSettings resolve(IgnoredSettings ignored) const {
    const auto all = [](const SettingOverride&) { return true; };
    RankerSettings chosen;
    chosen.kind = RankerSettings::default_kind(protocol_);
    apply(chosen, all);
    const RankerSettings defaults = RankerSettings::defaults(chosen, protocol_);
    RankerSettings whole = defaults;
    apply(whole, all);
    // All settings together decide which of them count, so that is known only now.
    RankerSettings ranker = defaults;
    apply(ranker, [&](const SettingOverride& override) { return !why_ignored(whole, override.key); });
    if (ignored == IgnoredSettings::kRefuse) check(ranker, defaults);
    if (!ranker.start_from.empty() && row_of(ranker.kind).starts_from_model) take_start_network(ranker);
    return ranker;
  }

 private:
  template <class Wanted>
  void apply(RankerSettings& ranker, Wanted wanted) const {
    const Schema& schema = RankerSettings::schema();
    if (table_ != nullptr) SettingSources::apply_table(schema, &ranker, *table_);
    if (ranker.name.empty()) ranker.name = name_of(ranker.kind);
    for (const SettingOverride& override : overrides_) {
      if (applies_to(override, ranker) && wanted(override))
        SettingSources::apply_override(schema, &ranker, override);
    }
  }

  /// The network is that of the model, so settings may only repeat it.
  void take_start_network(RankerSettings& ranker) const {
    const std::filesystem::path file = model_file_of(ranker.start_from);
    take_network(load_model(file, code_if(ranker.trust_code)), file.string(), ranker);
    RankerSettings asked = ranker;
    apply(asked, [](const SettingOverride&) { return true; });
    for (const Setting& setting : NetworkSettings::schema().settings) {
      const SettingValue there = setting.read(&ranker.network);
      if (why_ignored(ranker, setting.key) || setting.read(&asked.network) == there) continue;
      throw_error<InvalidArgument>(
          "Ranker '{}' has {} = {}, but the model that it starts from has {}: remove the setting, or "
          "choose another model than {}.",
          ranker.name, setting.key, to_toml(setting.read(&asked.network)), to_toml(there), file.string());
    }
  }

  void check(const RankerSettings& ranker, const RankerSettings& defaults) const {
    for (const SettingOverride& override : overrides_) {
      if (override.ranker.empty() || !applies_to(override, ranker)) continue;
      if (const auto reason = why_ignored(ranker, override.key))
        refuse(override.origin, override.key, ranker, *reason);
    }
    if (table_ == nullptr) return;
    for (const auto& entry : table_->entries) {
      const Setting& setting = *RankerSettings::schema().find(entry.key);
      if (setting.read(&ranker) == setting.read(&defaults)) continue;
      if (const auto reason = why_ignored(ranker, entry.key))
        refuse(entry.origin, entry.key, ranker, *reason);
    }
  }

  const TomlDocument::Table* table_;
  std::span<const SettingOverride> overrides_;
  ProtocolName protocol_;
};

/// The names in "a, b", or the text itself.
std::vector<std::string> listed(const SettingOverride& kind) {
  return std::get<std::vector<std::string>>(parse_setting(SettingKind::kTexts, kind.text));
}

/// The overrides with one kind in place of a list of them.
std::vector<SettingOverride> with_kind(std::span<const SettingOverride> overrides,
                                       const std::string& kind) {
  std::vector<SettingOverride> changed(overrides.begin(), overrides.end());
  for (SettingOverride& override : changed) {
    if (is_kind_of_all(override)) override.text = kind;
  }
  return changed;
}

/// Refuses an override of all rankers that none of them has.
void refuse_ignored_by_all(const std::vector<RankerSettings>& rankers,
                           std::span<const SettingOverride> overrides) {
  for (const SettingOverride& override : overrides) {
    if (override.table != RankerSettings::schema().table || !override.ranker.empty()) continue;
    const bool counts = std::any_of(rankers.begin(), rankers.end(), [&](const RankerSettings& ranker) {
      return !why_ignored(ranker, override.key);
    });
    if (counts) continue;
    refuse(override.origin, override.key, rankers.front(), *why_ignored(rankers.front(), override.key));
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

bool applies_to(const SettingOverride& override, const RankerSettings& ranker) {
  return override.table == RankerSettings::schema().table &&
         (override.ranker.empty() || override.ranker == ranker.name);
}

void refuse_ignored(const RankerSettings& ranker, std::span<const SettingOverride> overrides) {
  for (const SettingOverride& override : overrides) {
    if (!applies_to(override, ranker)) continue;
    if (const auto reason = why_ignored(ranker, override.key))
      refuse(override.origin, override.key, ranker, *reason);
  }
}

void select_rankers(TomlDocument& document, std::vector<SettingOverride>& overrides) {
  const auto kind = std::find_if(overrides.rbegin(), overrides.rend(), is_kind_of_all);
  if (kind == overrides.rend()) return;
  const std::vector<std::string> wanted = listed(*kind);
  std::vector<std::string> names;   // of the file
  std::vector<std::string> others;  // that are not wanted
  const auto drops = [&](const TomlDocument::Table& table) {
    if (table.name != RankerSettings::schema().table) return false;
    std::string name;
    for (const std::string_view key : {std::string_view("name"), kKind}) {
      const auto entry = std::ranges::find(table.entries, key, &TomlDocument::Entry::key);
      if (name.empty() && entry != table.entries.end()) {
        if (const auto* text = std::get_if<std::string>(&entry->value)) name = *text;
      }
    }
    names.push_back(name);
    if (std::find(wanted.begin(), wanted.end(), name) != wanted.end()) return false;
    others.push_back(name);
    return true;
  };
  std::vector<TomlDocument::Table> tables;
  std::copy_if(document.tables.begin(), document.tables.end(), std::back_inserter(tables),
               std::not_fn(drops));
  for (const std::string& name : wanted) {
    if (names.empty() || std::find(names.begin(), names.end(), name) != names.end()) continue;
    RankerSettings scratch;
    try {
      assign_setting(RankerSettings::schema(), &scratch, kKind, name, kind->origin);
    } catch (const InvalidArgument& error) {
      throw_error<InvalidArgument>("{} Or name rankers of the file: {}.", error.what(),
                                   fmt::join(names, ", "));
    }
  }
  if (names.size() - others.size() != wanted.size()) return;
  const auto sweeps_one_of = [](const TomlDocument::Table& table, const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return (table.name + ".").starts_with("sweep." + name + ".");
    });
  };
  std::erase_if(tables, [&](const TomlDocument::Table& table) {
    return sweeps_one_of(table, others) && !sweeps_one_of(table, wanted);
  });
  document.tables = std::move(tables);
  std::erase_if(overrides, is_kind_of_all);
}

std::vector<RankerSettings> resolve_rankers(const TomlDocument& document,
                                            std::span<const SettingOverride> overrides,
                                            ProtocolName protocol, IgnoredSettings ignored) {
  std::vector<const TomlDocument::Table*> tables;
  for (const auto& table : document.tables) {
    if (table.name == RankerSettings::schema().table) tables.push_back(&table);
  }
  const auto kind = std::find_if(overrides.rbegin(), overrides.rend(), is_kind_of_all);
  const std::vector<std::string> kinds =
      kind == overrides.rend() ? std::vector<std::string>{} : listed(*kind);
  std::vector<RankerSettings> rankers;
  if (kinds.size() > 1) {
    if (!tables.empty()) {
      throw_error<InvalidArgument>(
          "{} names {}, but the file describes {} of its own: name one kind, or leave out the file's "
          "[[ranker]] tables.",
          kind->origin, counted(kinds.size(), "ranker"), counted(tables.size(), "ranker"));
    }
    for (const std::string& one : kinds)
      rankers.push_back(RankerSource(nullptr, with_kind(overrides, one), protocol).resolve(ignored));
  } else {
    if (tables.empty()) tables.push_back(nullptr);
    for (const auto* table : tables)
      rankers.push_back(RankerSource(table, overrides, protocol).resolve(ignored));
  }
  if (ignored == IgnoredSettings::kRefuse) refuse_ignored_by_all(rankers, overrides);
  return rankers;
}

}  // namespace olrank
