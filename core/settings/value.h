#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace olrank {

/// The value of one setting, in the order of SettingKind.
using SettingValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                                  std::vector<double>, std::vector<std::string>, std::vector<bool>>;

enum class SettingKind { kSwitch, kInteger, kReal, kText, kIntegers, kReals, kTexts, kSwitches };

inline SettingKind kind_of(const SettingValue& value) {
  return static_cast<SettingKind>(value.index());
}

/// "an integer", "a list of strings", …
std::string_view readable_kind(SettingKind kind);

/// The value as TOML writes it; reading that back gives the same value, to the last bit of a real.
std::string to_toml(const SettingValue& value);

/// Reads what a command line says: true/false, numbers, texts with or without quotes, lists as "a,b" or
/// "[a, b]", and ranges of whole numbers as "1-5". Throws InvalidArgument without naming the setting.
SettingValue parse_setting(SettingKind kind, std::string_view text);

/// A value read from a file as the kind that a setting has: whole numbers serve as reals, one value as a
/// list of one, an empty list as any list. Throws InvalidArgument without naming the setting.
SettingValue convert_setting(SettingKind kind, const SettingValue& value);

}  // namespace olrank
