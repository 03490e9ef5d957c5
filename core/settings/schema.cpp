#include "core/settings/schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/settings/setting_sources.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

std::string header(const Schema& schema) {
  return schema.repeated ? fmt::format("[[{}]]", schema.table) : fmt::format("[{}]", schema.table);
}

const Setting& find_setting(const Schema& schema, std::string_view key, std::string_view origin) {
  if (const Setting* setting = schema.find(key)) return *setting;
  if (const DroppedSetting* dropped = dropped_setting(schema.table, key))
    throw_error<InvalidArgument>("{} {}", setting_subject(origin, key), dropped->sentence);
  throw_error<InvalidArgument>("{}: Unknown key '{}' in {}. {}", origin, key, header(schema),
                               did_you_mean(key, schema.keys()));
}

void check_number(const Setting& setting, double number, std::string_view shown, std::string_view origin) {
  if (setting.bounds.contain(number)) return;
  throw_error<InvalidArgument>("{} must be {}, not {}.", setting_subject(origin, setting.key),
                               setting.bounds.text(), shown);
}

void check_text(const Setting& setting, const std::string& text, std::string_view origin) {
  const auto& choices = setting.choices;
  if (choices.empty() || std::find(choices.begin(), choices.end(), text) != choices.end()) return;
  for (const std::string& name : {setting.key + " = " + text, text}) {
    if (const auto dropped = dropped_sentence(name))
      throw_error<InvalidArgument>("{}: {}", origin, *dropped);
  }
  throw_error<InvalidArgument>("{} {}", setting_subject(origin, setting.key),
                               must_be_one_of(text, choices));
}

void check_value(const Setting& setting, const SettingValue& value, std::string_view origin) {
  const auto check = [&](const auto& item) {
    using Item = std::decay_t<decltype(item)>;
    if constexpr (std::is_same_v<Item, std::string>) {
      check_text(setting, item, origin);
    } else if constexpr (!std::is_same_v<Item, bool>) {
      check_number(setting, static_cast<double>(item), to_toml(item), origin);
    }
  };
  std::visit(
      [&](const auto& held) {
        if constexpr (detail::is_list<std::decay_t<decltype(held)>>) {
          for (const auto& item : held) check(item);
        } else {
          check(held);
        }
      },
      value);
}

template <class Read>
void assign(const Schema& schema, void* object, std::string_view key, std::string_view origin,
            const Read& read) {
  const Setting& setting = find_setting(schema, key, origin);
  SettingValue value;
  try {
    value = read(setting.kind);
  } catch (const InvalidArgument& complaint) {
    throw_error<InvalidArgument>("{} {}.", setting_subject(origin, key), complaint.what());
  }
  check_value(setting, value, origin);
  setting.write(object, value);
}

std::string escaped(std::string text) {
  for (std::size_t i = 0; (i = text.find('|', i)) != std::string::npos; i += 2) text.insert(i, "\\");
  return text;
}

std::string allowed(const Setting& setting) {
  if (setting.choices.empty()) {
    std::string text(readable_kind(setting.kind));
    if (const std::string bounds = setting.bounds.text(); !bounds.empty()) text += ", " + bounds;
    return text;
  }
  std::string text;
  for (const std::string& choice : setting.choices) text += (text.empty() ? "`" : ", `") + choice + "`";
  return text;
}

std::string meaning(const Setting& setting) {
  std::string text = setting.help;
  if (!setting.symbol.empty()) text += fmt::format(" ({})", setting.symbol);
  if (!setting.unit.empty()) text += fmt::format(" [{}]", setting.unit);
  return text;
}

std::string flags_of(const Schema& schema, const Setting& setting) {
  const std::string flags = "`" + systematic_flag(schema, setting) + "`";
  return setting.flag.empty() || setting.has_only_flag ? flags
                                                       : fmt::format("`--{}`, {}", setting.flag, flags);
}

}  // namespace

bool SettingBounds::contain(double value) const {
  if (lowest && !(above_lowest ? value > *lowest : value >= *lowest)) return false;
  return !highest || (below_highest ? value < *highest : value <= *highest);
}

std::string SettingBounds::text() const {
  std::string text;
  if (lowest) text = fmt::format("{} {}", above_lowest ? "above" : "at least", *lowest);
  if (highest)
    text += fmt::format("{}{} {}", lowest ? " and " : "", below_highest ? "below" : "at most", *highest);
  return text;
}

const Setting* Schema::find(std::string_view key) const {
  for (const Setting& setting : settings) {
    if (setting.key == key) return &setting;
  }
  return nullptr;
}

std::vector<std::string> Schema::keys() const {
  std::vector<std::string> names;
  names.reserve(settings.size());
  for (const Setting& setting : settings) names.push_back(setting.key);
  return names;
}

void assign_setting(const Schema& schema, void* object, std::string_view key, const SettingValue& value,
                    std::string_view origin) {
  assign(schema, object, key, origin, [&](SettingKind kind) { return convert_setting(kind, value); });
}

void assign_setting_text(const Schema& schema, void* object, std::string_view key, std::string_view text,
                         std::string_view origin) {
  assign(schema, object, key, origin,
         [&](SettingKind kind) { return convert_setting(kind, parse_setting(kind, text)); });
}

std::string setting_subject(std::string_view origin, std::string_view key) {
  const bool names_key = origin.starts_with("--") || origin.starts_with(kEnvironmentPrefix);
  return names_key ? std::string(origin) : fmt::format("{}: '{}'", origin, key);
}

std::string print_settings(const Schema& schema, const void* object,
                           const std::function<bool(const Setting&)>& wanted) {
  std::string text = header(schema) + "\n";
  for (const Setting& setting : schema.settings) {
    if (wanted && !wanted(setting)) continue;
    text += fmt::format("{} = {}\n", setting.key, to_toml(setting.read(object)));
  }
  return text;
}

std::string systematic_flag(const Schema& schema, const Setting& setting) {
  if (setting.has_only_flag) return "--" + setting.flag;
  std::string flag = schema.repeated ? setting.key : schema.table + "-" + setting.key;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return "--" + flag;
}

std::string reference_page(std::span<const SchemaWithDefaults> tables) {
  std::string page =
      "# Configuration\n\n"
      "Every setting of `olrank run`, and `[train]` of `olrank train`: its key in a TOML file, its flags "
      "on the command line, its default "
      "and its allowed values. The program generates this page: `olrank info --settings`.\n\n"
      "Set a key in a file, with its flag, or with `--set TABLE.KEY=VALUE`. The command line overrides the "
      "file; on the command line, later settings override earlier ones. `--set ranker.KEY=VALUE` and a "
      "ranker's flags apply to every ranker, `--set ranker.NAME.KEY=VALUE` to one. Where a default depends "
      "on the protocol or the ranker's kind, this page shows that of `recommended` and `olranknet`; "
      "`olrank run "
      "… --print-config` prints the values in effect.\n";
  for (const auto& [schema, defaults] : tables) {
    page += fmt::format("\n## `{}`\n\n{}\n\n", header(*schema), schema->help);
    if (schema->file_only) page += "This table has no flags and cannot be changed with `--set`.\n\n";
    page += schema->file_only ? "| key | default | allowed | meaning |\n|---|---|---|---|\n"
                              : "| key | flags | default | allowed | meaning |\n|---|---|---|---|---|\n";
    for (const Setting& setting : schema->settings) {
      page += fmt::format("| `{}` | ", setting.key);
      if (!schema->file_only) page += flags_of(*schema, setting) + " | ";
      page += fmt::format("`{}` | {} | {} |\n", escaped(to_toml(setting.read(defaults))),
                          escaped(allowed(setting)), escaped(meaning(setting)));
    }
  }
  return page;
}

}  // namespace olrank
