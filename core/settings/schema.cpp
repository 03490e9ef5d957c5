#include "core/settings/schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/settings/dropped_names.h"
#include "core/text/nearest.h"

namespace olrank {
namespace {

std::string header(const Schema& schema) {
  return schema.repeated ? fmt::format("[[{}]]", schema.table) : fmt::format("[{}]", schema.table);
}

const Setting& find_setting(const Schema& schema, std::string_view key, std::string_view origin) {
  if (const Setting* setting = schema.find(key)) return *setting;
  if (const DroppedSetting* dropped = dropped_setting(schema.table, key))
    throw InvalidArgument(fmt::format("{} {}", setting_subject(origin, key), dropped->sentence));
  throw InvalidArgument(fmt::format("{}: Unknown key '{}' in {}. {}", origin, key, header(schema),
                                    did_you_mean(key, schema.keys())));
}

void check_number(const Setting& setting, double number, std::string_view shown, std::string_view origin) {
  if (setting.bounds.contain(number)) return;
  throw InvalidArgument(fmt::format("{} must be {}, not {}.", setting_subject(origin, setting.key),
                                    setting.bounds.text(), shown));
}

void check_text(const Setting& setting, const std::string& text, std::string_view origin) {
  const auto& choices = setting.choices;
  if (choices.empty() || std::find(choices.begin(), choices.end(), text) != choices.end()) return;
  if (const auto dropped = dropped_sentence(text))
    throw InvalidArgument(fmt::format("{}: {}", origin, *dropped));
  throw InvalidArgument(
      fmt::format("{} {}", setting_subject(origin, setting.key), must_be_one_of(text, choices)));
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

}  // namespace

bool SettingBounds::contain(double value) const {
  if (lowest && !(above_lowest ? value > *lowest : value >= *lowest)) return false;
  return !highest || value <= *highest;
}

std::string SettingBounds::text() const {
  std::string text;
  if (lowest) text = fmt::format("{} {}", above_lowest ? "above" : "at least", *lowest);
  if (highest) text += fmt::format("{}at most {}", lowest ? " and " : "", *highest);
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
  const Setting& setting = find_setting(schema, key, origin);
  SettingValue converted;
  try {
    converted = convert_setting(setting.kind, value);
  } catch (const InvalidArgument& complaint) {
    throw InvalidArgument(fmt::format("{} {}.", setting_subject(origin, key), complaint.what()));
  }
  check_value(setting, converted, origin);
  setting.write(object, converted);
}

void assign_setting_text(const Schema& schema, void* object, std::string_view key, std::string_view text,
                         std::string_view origin) {
  const Setting& setting = find_setting(schema, key, origin);
  SettingValue value;
  try {
    value = parse_setting(setting.kind, text);
  } catch (const InvalidArgument& complaint) {
    throw InvalidArgument(fmt::format("{} {}.", setting_subject(origin, key), complaint.what()));
  }
  assign_setting(schema, object, key, value, origin);
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

}  // namespace olrank
