#include "olrank/settings.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "jobs/settings/configuration.h"
#include "jobs/settings/run_settings.h"
#include "jobs/settings/train_configuration.h"
#include "models/labels/label_settings.h"

namespace olrank {
namespace {

using nlohmann::ordered_json;

std::string_view kind_name(SettingKind kind) {
  constexpr std::array<std::string_view, 10> kNames = {"switch",       "integer",      "real",  "text",
                                                       "integers",     "reals",        "texts", "switches",
                                                       "real-or-auto", "reals-or-auto"};
  return kNames[static_cast<std::size_t>(kind)];
}

ordered_json or_null(const std::optional<double>& bound) {
  return bound ? ordered_json(*bound) : ordered_json(nullptr);
}

ordered_json setting_description(const Setting& setting, const void* defaults) {
  return {{"key", setting.key},
          {"kind", kind_name(setting.kind)},
          {"help", setting.help},
          {"unit", setting.unit},
          {"choices", setting.choices},
          {"lowest", or_null(setting.bounds.lowest)},
          {"above_lowest", setting.bounds.above_lowest},
          {"highest", or_null(setting.bounds.highest)},
          {"below_highest", setting.bounds.below_highest},
          {"default", setting_json(setting.read(defaults))}};
}

ordered_json table_description(const SchemaWithDefaults& table) {
  ordered_json settings = ordered_json::array();
  for (const Setting& setting : table.schema->settings)
    settings.push_back(setting_description(setting, table.defaults));
  return {{"table", table.schema->table},
          {"help", table.schema->help},
          {"repeated", table.schema->repeated},
          {"settings", settings}};
}

}  // namespace

std::string settings_json() {
  ordered_json tables = ordered_json::array();
  for (const SchemaWithDefaults& table : configuration_tables()) tables.push_back(table_description(table));
  for (const SchemaWithDefaults& table : train_tables()) {
    if (table.schema == &LabelSettings::schema()) tables.push_back(table_description(table));
  }
  return ordered_json{{"tables", tables}}.dump();
}

}  // namespace olrank
