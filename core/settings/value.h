#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/settings/enum_names.h"

namespace olrank {

/// The value of one setting, in the order of SettingKind; one of kRealOrAuto is a number or the text
/// "auto", one of kRealsOrAuto can also be a list of several numbers.
using SettingValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                                  std::vector<double>, std::vector<std::string>, std::vector<bool>>;

enum class SettingKind {
  kSwitch,
  kInteger,
  kReal,
  kText,
  kIntegers,
  kReals,
  kTexts,
  kSwitches,
  kRealOrAuto,
  kRealsOrAuto
};

inline SettingKind kind_of(const SettingValue& value) {
  return static_cast<SettingKind>(value.index());
}

/// "an integer", "a list of strings", …
std::string_view readable_kind(SettingKind kind);

/// The value in TOML syntax; it reads back exactly.
std::string to_toml(const SettingValue& value);

/// Parses a command-line value: true/false, numbers, strings with or without quotes, lists as "a,b" or "[a,
/// b]", and integer ranges as "1-5". Throws InvalidArgument without the name of the setting.
SettingValue parse_setting(SettingKind kind, std::string_view text);

/// Converts a value from a file to the kind of a setting: integers to reals, one value to a list of one, an
/// empty list to any list. Throws InvalidArgument without the name of the setting.
SettingValue convert_setting(SettingKind kind, const SettingValue& value);

[[noreturn]] void refuse_choice(std::string_view option, const std::string& text,
                                const std::vector<std::string>& names);

/// The value that `text` names; `option` is the flag or option in the message. Throws InvalidArgument that
/// lists the names.
template <class Enum>
Enum parse_choice(std::string_view option, const std::string& text) {
  if (const auto value = value_named<Enum>(text)) return *value;
  std::vector<std::string> names;
  names.reserve(EnumNames<Enum>::values.size());
  for (const auto& [value, name] : EnumNames<Enum>::values) names.emplace_back(name);
  refuse_choice(option, text, names);
}

}  // namespace olrank
