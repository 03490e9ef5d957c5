#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/settings/enum_names.h"
#include "core/settings/value.h"

namespace olrank {

/// Bounds of a number, or of each number in a list.
struct SettingBounds {
  std::optional<double> lowest = std::nullopt;
  std::optional<double> highest = std::nullopt;
  bool above_lowest = false;   // `lowest` itself is not allowed
  bool below_highest = false;  // nor `highest`

  bool contain(double value) const;
  std::string text() const;  // "at least 1 and at most 10", empty without bounds
};
inline SettingBounds above(double lowest, std::optional<double> highest = {}) {
  return {lowest, highest, true};
}
inline SettingBounds below(double lowest, double highest) {
  return {lowest, highest, false, true};
}

/// One setting of a component: its name, its allowed values and its member in the component's struct.
/// Flags, TOML keys, the printed configuration and the reference page are all derived from it.
struct Setting {
  std::string key;
  SettingKind kind = SettingKind::kText;
  std::string help;            // one line
  std::string unit;            // empty for a bare number
  std::string symbol;          // as in docs/MATH.md
  std::string flag;            // a short alias of the systematic flag, without dashes
  bool has_only_flag = false;  // instead of the systematic one
  SettingBounds bounds;
  std::vector<std::string> choices;  // allowed texts; empty allows any
  std::function<SettingValue(const void*)> read;
  std::function<void(void*, const SettingValue&)> write;
};

/// The settings of one table of the configuration file.
struct Schema {
  std::string table;
  std::string help;
  bool repeated = false;   // [[table]], any number of them
  bool file_only = false;  // has neither flags nor --set
  std::vector<Setting> settings;

  const Setting* find(std::string_view key) const;
  std::vector<std::string> keys() const;
};

/// Writes a value into `object` after checking kind, bounds and choices. `origin` is where the value was
/// given, "file.toml:3:9" or "--alpha", and begins every error message.
void assign_setting(const Schema& schema, void* object, std::string_view key, const SettingValue& value,
                    std::string_view origin);
/// Writes a value that is a text from the command line.
void assign_setting_text(const Schema& schema, void* object, std::string_view key, std::string_view text,
                         std::string_view origin);

/// `key = value` lines under the table's header, of the settings that are `wanted`.
std::string print_settings(const Schema& schema, const void* object,
                           const std::function<bool(const Setting&)>& wanted = {});

/// How a message names a setting: "--alpha" for a flag, "c.toml:2:9: 'alpha'" for a place in a file.
std::string setting_subject(std::string_view origin, std::string_view key);

/// The name of a setting from the environment begins with this: OLRANK_RUN_JOBS.
inline constexpr std::string_view kEnvironmentPrefix = "OLRANK_";

namespace detail {

template <class T>
constexpr bool is_list = false;
template <class T>
constexpr bool is_list<std::vector<T>> = true;

template <class T>
SettingValue to_value(const T& member) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string> || is_list<T>)
    return member;
  else if constexpr (std::is_same_v<T, std::optional<double>>)
    return member ? SettingValue(*member) : SettingValue(std::string("auto"));
  else if constexpr (std::is_same_v<T, std::optional<std::vector<double>>>)
    return !member               ? SettingValue(std::string("auto"))
           : member->size() == 1 ? SettingValue(member->front())
                                 : SettingValue(*member);
  else if constexpr (std::is_enum_v<T>)
    return std::string(name_of(member));
  else if constexpr (std::is_integral_v<T>)
    return static_cast<std::int64_t>(member);
  else
    return static_cast<double>(member);
}

template <class T>
SettingKind setting_kind() {
  if constexpr (std::is_same_v<T, std::optional<double>>) return SettingKind::kRealOrAuto;
  if constexpr (std::is_same_v<T, std::optional<std::vector<double>>>) return SettingKind::kRealsOrAuto;
  return kind_of(to_value(T{}));
}

template <class T>
void from_value(T& member, const SettingValue& value) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string> || is_list<T>) {
    member = std::get<T>(value);
  } else if constexpr (std::is_same_v<T, std::optional<double>>) {
    const auto* number = std::get_if<double>(&value);
    member = number != nullptr ? T(*number) : T();
  } else if constexpr (std::is_same_v<T, std::optional<std::vector<double>>>) {
    const auto* number = std::get_if<double>(&value);
    const auto* numbers = std::get_if<std::vector<double>>(&value);
    member = number != nullptr ? T(std::vector<double>{*number}) : numbers != nullptr ? T(*numbers) : T();
  } else if constexpr (std::is_enum_v<T>) {
    member = value_named<T>(std::get<std::string>(value)).value();  // already checked against the choices
  } else if constexpr (std::is_integral_v<T>) {
    member = static_cast<T>(std::get<std::int64_t>(value));
  } else {
    member = static_cast<T>(std::get<double>(value));
  }
}

}  // namespace detail

/// Describes struct `Settings`, field by field; unit(), symbol() and so on apply to the last field.
template <class Settings>
class SchemaBuilder {
 public:
  SchemaBuilder(std::string table, std::string help) {
    schema_.table = std::move(table);
    schema_.help = std::move(help);
  }

  template <class T>
  SchemaBuilder& field(std::string key, T Settings::*member, std::string help, SettingBounds bounds = {}) {
    Setting setting;
    setting.bounds = bounds;
    setting.key = std::move(key);
    setting.kind = detail::setting_kind<T>();
    setting.help = std::move(help);
    if constexpr (std::is_enum_v<T>) {
      for (const auto& [value, name] : EnumNames<T>::values) setting.choices.emplace_back(name);
    }
    setting.read = [member](const void* object) {
      return detail::to_value(static_cast<const Settings*>(object)->*member);
    };
    setting.write = [member](void* object, const SettingValue& value) {
      detail::from_value(static_cast<Settings*>(object)->*member, value);
    };
    schema_.settings.push_back(std::move(setting));
    return *this;
  }

  /// Adds the settings of a member struct, which its component describes, to this table.
  template <class Part>
  SchemaBuilder& include(Part Settings::*member, const Schema& part) {
    for (Setting setting : part.settings) {
      setting.read = [member, read = setting.read](const void* object) {
        return read(&(static_cast<const Settings*>(object)->*member));
      };
      setting.write = [member, write = setting.write](void* object, const SettingValue& value) {
        write(&(static_cast<Settings*>(object)->*member), value);
      };
      schema_.settings.push_back(std::move(setting));
    }
    return *this;
  }

  SchemaBuilder& repeated() { return set(schema_.repeated, true); }
  SchemaBuilder& file_only() { return set(schema_.file_only, true); }
  SchemaBuilder& unit(const std::string& unit) { return set(latest().unit, unit); }
  SchemaBuilder& symbol(const std::string& symbol) { return set(latest().symbol, symbol); }
  SchemaBuilder& flag(const std::string& flag) { return set(latest().flag, flag); }
  /// This is for a key whose own flag a command has for something else.
  SchemaBuilder& only_flag(const std::string& flag) {
    latest().has_only_flag = true;
    return this->flag(flag);
  }
  SchemaBuilder& one_of(const std::vector<std::string>& choices) { return set(latest().choices, choices); }
  Schema build() { return std::move(schema_); }

 private:
  Setting& latest() { return schema_.settings.back(); }
  template <class Member, class Value>
  SchemaBuilder& set(Member& member, const Value& value) {
    member = value;
    return *this;
  }

  Schema schema_;
};

/// A table and the struct that holds its defaults.
struct SchemaWithDefaults {
  const Schema* schema;
  const void* defaults;
};

/// docs/CONFIGURATION.md: every setting with its key, flags, default, bounds and meaning.
std::string reference_page(std::span<const SchemaWithDefaults> tables);

/// The systematic flag of a setting, with dashes: --protocol-eval-every, and --learning-rate for a
/// repeated table, whose name is left out.
std::string systematic_flag(const Schema& schema, const Setting& setting);

}  // namespace olrank
