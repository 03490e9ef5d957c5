#include "apps/setting_flags.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>

#include "core/settings/enum_names.h"
#include "core/settings/setting_sources.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "jobs/output_folder.h"

namespace olrank {

/// The types of values in --help.
template <>
struct EnumNames<SettingKind> {
  static constexpr std::array values =
      names_in_order<SettingKind>("true|false", "INTEGER", "REAL", "TEXT", "INTEGERS", "REALS", "NAMES",
                                  "SWITCHES", "REAL|auto", "REALS|auto");
};

namespace {

/// An option that may be repeated and takes one value each time.
CLI::Option* add_repeatable(CLI::App& app, const std::string& names, const std::string& help) {
  const auto keep_as_text = [](const CLI::results_t&) { return true; };
  return app.add_option(names, keep_as_text, help)
      ->type_size(1)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->trigger_on_parse(false);
}

std::string type_name(const Setting& setting) {
  if (!setting.choices.empty()) return fmt::format("{}", fmt::join(setting.choices, "|"));
  return std::string(name_of(setting.kind));
}

/// A default as the command line takes it: without the quotes and brackets of TOML.
std::string shown_default(const Setting& setting, const void* defaults) {
  std::string text = to_toml(setting.read(defaults));
  std::erase_if(text, [](char c) { return c == '"' || c == '[' || c == ']' || c == ' '; });
  return text;
}

std::string help_line(const Setting& setting, const void* defaults) {
  std::string help = setting.help;
  std::erase(help, '`');
  const std::string value = shown_default(setting, defaults);
  return value.empty() ? help : fmt::format("{} [default: {}]", help, value);
}

}  // namespace

void SettingFlags::declare(CLI::App& app, const Schema* own) {
  std::vector<SchemaWithDefaults> tables;
  for (const SchemaWithDefaults& table : configuration_tables()) {
    const bool special =
        table.schema == &StudySettings::schema() || table.schema == &SearchSettings::schema();
    if (!special || table.schema == own) tables.push_back(table);
  }
  declare(app, tables);
}

void SettingFlags::declare(CLI::App& app, std::span<const SchemaWithDefaults> tables) {
  app_ = &app;
  set_ =
      add_repeatable(app, "--set", "set any key: TABLE.KEY=VALUE, or ranker.NAME.KEY=VALUE for one ranker");
  set_->type_name("KEY=VALUE");
  for (const auto& [schema, defaults] : tables) {
    if (schema->file_only) continue;
    tables_.push_back(schema);
    for (const Setting& setting : schema->settings) {
      std::string names = systematic_flag(*schema, setting);
      if (!setting.flag.empty() && "--" + setting.flag != names) names.insert(0, "--" + setting.flag + ",");
      CLI::Option* option = add_repeatable(app, names, help_line(setting, defaults));
      option->group("[" + schema->table + "]")->type_name(type_name(setting));
      flags_.push_back({option, schema->table, setting.key});
    }
  }
}

std::vector<SettingOverride> SettingFlags::overrides() const {
  std::size_t variables = 0;
  while (environ[variables] != nullptr) ++variables;
  std::vector<SettingOverride> given =
      settings_of_environment(std::span<const char* const>(environ, variables), tables_);
  const std::vector<SettingOverride> flags = given_flags();
  given.insert(given.end(), flags.begin(), flags.end());
  return given;
}

std::vector<SettingOverride> SettingFlags::given_flags() const {
  std::vector<SettingOverride> given;
  std::map<const CLI::Option*, std::size_t> used;
  for (const CLI::Option* option : app_->parse_order()) {
    const auto flag = std::find_if(flags_.begin(), flags_.end(),
                                   [&](const Flag& known) { return known.option == option; });
    if (option != set_ && flag == flags_.end()) continue;
    const std::size_t before = used[option]++;
    if (before > 0 && flag != flags_.end() && flag->key == "kind") {
      throw_error<InvalidArgument>(
          "{0} can be given once. To compare several rankers, list their kinds, {0} pairrank,pdgd, or "
          "describe each under its own [[ranker]] in a file.",
          option->get_name());
    }
    const std::string& text = option->results().at(before);
    if (option == set_) {
      given.push_back(parse_override(text));
    } else {
      given.push_back({flag->table, "", flag->key, text, option->get_name()});
    }
  }
  return given;
}

std::string capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::vector<SettingOverride> settings_of_environment(std::span<const char* const> variables,
                                                     std::span<const Schema* const> tables) {
  std::vector<SettingOverride> given;
  for (const std::string_view variable : variables) {
    const std::string name(variable.substr(0, variable.find('=')));
    for (const Schema* schema : tables) {
      const std::string prefix = std::string(kEnvironmentPrefix) + capitals(schema->table) + "_";
      if (!name.starts_with(prefix)) continue;
      std::vector<std::string> known;
      const Setting* found = nullptr;
      for (const Setting& setting : schema->settings) {
        known.push_back(prefix + capitals(setting.key));
        if (known.back() == name) found = &setting;
      }
      if (found == nullptr) {
        for (const DroppedSetting& dropped : kDroppedSettings) {
          if (dropped.table == schema->table && prefix + capitals(std::string(dropped.key)) == name)
            throw_error<InvalidArgument>("{} {}", name, dropped.sentence);
        }
        throw_error<InvalidArgument>(
            "The environment variable {} is no setting of [{}]. {} Unset it, or correct its name.", name,
            schema->table, did_you_mean(name, known));
      }
      const std::string text(variable.substr(std::min(name.size() + 1, variable.size())));
      given.push_back({schema->table, "", found->key, text, name});
    }
  }
  return given;
}

void ExperimentFlags::declare(CLI::App& app) {
  auto* resume = app.add_flag("--resume", resume_, "continue an earlier run in --out");
  app.add_flag("--force", force_, "replace the results of an earlier run in --out")->excludes(resume);
  app.add_option(
         "--shard", shard_,
         "run only shard I of N, with I from 0; default: from the scheduler's environment variables")
      ->type_name("I/N");
}

ExperimentRequest ExperimentFlags::request() const {
  ExperimentRequest request;
  request.shard = shard_.empty() ? shard_of_environment([](const char* name) { return std::getenv(name); })
                                 : parse_shard(shard_);
  if (resume_) request.existing = Existing::kResume;
  if (force_) request.existing = Existing::kReplace;
  return request;
}

}  // namespace olrank
