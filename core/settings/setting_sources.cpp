#include "core/settings/setting_sources.h"

#include <algorithm>

#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {

void SettingSources::require_tables(std::span<const std::string> names, std::string_view whose) const {
  const auto require = [&](const std::string& table, const std::string& origin) {
    if (std::find(names.begin(), names.end(), table) != names.end()) return;
    throw_error<InvalidArgument>("{}: '{}' has no table '{}'. {}", origin, whose, table,
                                 did_you_mean(table, names));
  };
  for (const TomlDocument::Table& table : document_.tables) require(table.name, table.origin);
  for (const SettingOverride& override : overrides_) require(override.table, override.origin);
}

void SettingSources::apply(const Schema& schema, void* object, const SettingFilter& filter) const {
  for (const TomlDocument::Table& table : document_.tables) {
    if (table.name == schema.table) apply_table(schema, object, table, filter);
  }
  for (const SettingOverride& override : overrides_) {
    if (override.table != schema.table) continue;
    if (!filter || filter(override.key, override.origin)) apply_override(schema, object, override);
  }
}

void SettingSources::apply_table(const Schema& schema, void* object, const TomlDocument::Table& table,
                                 const SettingFilter& filter) {
  for (const TomlDocument::Entry& entry : table.entries) {
    const bool known = schema.find(entry.key) != nullptr;
    if (!known && dropped_setting(schema.table, entry.key, to_toml(entry.value)) != nullptr) continue;
    if (filter && !filter(entry.key, entry.origin)) continue;
    assign_setting(schema, object, entry.key, entry.value, known ? entry.origin : entry.key_origin);
  }
}

}  // namespace olrank
