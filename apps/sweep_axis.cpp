#include "apps/sweep_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "core/text/nearest.h"
#include "models/setting_use.h"

namespace olrank {
namespace {

/// "NAME" of [sweep.NAME], empty for [sweep].
std::string ranker_of(const TomlDocument::Table& table) {
  return table.name == kSweepTable ? "" : table.name.substr(kSweepTable.size() + 1);
}

void check_ranker(const TomlDocument& document, const TomlDocument::Table& table,
                  const std::vector<RankerSettings>& rankers) {
  const std::string name = ranker_of(table);
  std::vector<std::string> names;
  names.reserve(rankers.size());
  for (const RankerSettings& ranker : rankers) names.push_back(ranker.name);
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return;
  // An unquoted name with a dot is a nested table, and the outer table is empty.
  const bool holds_others = std::any_of(
      document.tables.begin(), document.tables.end(),
      [&](const TomlDocument::Table& other) { return other.name.rfind(table.name + ".", 0) == 0; });
  if (table.entries.empty() && holds_others) return;
  throw InvalidArgument(
      fmt::format("{}: Unknown ranker '{}'. {}", table.origin, name, did_you_mean(name, names)));
}

std::vector<SettingValue> items_of(const SettingValue& value) {
  return std::visit(
      [](const auto& held) {
        std::vector<SettingValue> items;
        if constexpr (detail::is_list<std::decay_t<decltype(held)>>) {
          for (const auto& item : held) items.emplace_back(item);
        } else {
          items.emplace_back(held);
        }
        return items;
      },
      value);
}

SweepAxis read_axis(const std::string& ranker, const TomlDocument::Entry& entry) {
  const Schema& schema = RankerSettings::schema();
  const Setting* setting = schema.find(entry.key);
  if (setting == nullptr) {
    throw InvalidArgument(fmt::format("{}: Unknown key '{}' in [{}]. {}", entry.key_origin, entry.key,
                                      ranker.empty() ? kSweepTable : kSweepTable + "." + ranker,
                                      did_you_mean(entry.key, schema.keys())));
  }
  if (entry.key == "name") {
    throw InvalidArgument(fmt::format(
        "{}: 'name' cannot be swept; names are generated from the swept values.", entry.key_origin));
  }
  SweepAxis axis{ranker, entry.key, {}};
  for (const SettingValue& item : items_of(entry.value)) {
    RankerSettings scratch;
    assign_setting(schema, &scratch, entry.key, item, entry.origin);
    const SettingValue value = setting->read(&scratch);
    if (std::find(axis.values.begin(), axis.values.end(), value) != axis.values.end()) {
      throw InvalidArgument(
          fmt::format("{}: '{}' contains {} twice.", entry.origin, entry.key, to_toml(value)));
    }
    axis.values.push_back(value);
  }
  if (axis.values.empty()) {
    throw InvalidArgument(
        fmt::format("{}: '{}' is empty; it needs at least one value to try.", entry.origin, entry.key));
  }
  return axis;
}

/// Whether the ranker uses the axis's setting as it is, or with a value of another of its axes.
bool may_count(const SweepAxis& axis, const std::vector<SweepAxis>& axes, const RankerSettings& ranker) {
  if (!why_ignored(ranker, axis.key)) return true;
  for (const SweepAxis& other : axes) {
    for (const SettingValue& value : other.values) {
      RankerSettings changed = ranker;
      assign_setting(RankerSettings::schema(), &changed, other.key, value, "[sweep]");
      if (!why_ignored(changed, axis.key)) return true;
    }
  }
  return false;
}

/// Refuses an axis that none of its rankers uses.
void check_counts(const SweepAxis& axis, const std::vector<SweepAxis>& axes,
                  const std::vector<RankerSettings>& rankers, const std::string& origin) {
  const RankerSettings* ignoring = nullptr;
  for (const RankerSettings& ranker : rankers) {
    if (!axis.ranker.empty() && axis.ranker != ranker.name) continue;
    if (may_count(axis, axes, ranker)) return;
    ignoring = &ranker;
  }
  if (ignoring == nullptr) return;
  throw InvalidArgument(fmt::format("{}: '{}' does not apply to ranker '{}': {}.", origin, axis.key,
                                    ignoring->name, *why_ignored(*ignoring, axis.key)));
}

/// A TOML key, quoted if necessary.
std::string toml_key(const std::string& name) {
  const bool bare = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
  return bare ? name : to_toml(name);
}

}  // namespace

bool is_sweep_table(const TomlDocument::Table& table) {
  return table.name == kSweepTable || table.name.rfind(kSweepTable + ".", 0) == 0;
}

std::vector<SweepAxis> read_sweep(const TomlDocument& document,
                                  const std::vector<RankerSettings>& rankers) {
  std::vector<SweepAxis> axes;
  std::vector<std::string> origins;
  for (const TomlDocument::Table& table : document.tables) {
    if (!is_sweep_table(table)) continue;
    if (table.repeated) {
      throw InvalidArgument(fmt::format("{}: Write this table as [{}].", table.origin, table.name));
    }
    check_ranker(document, table, rankers);
    for (const TomlDocument::Entry& entry : table.entries) {
      SweepAxis axis = read_axis(ranker_of(table), entry);
      const bool duplicate = std::any_of(axes.begin(), axes.end(), [&](const SweepAxis& other) {
        return other.ranker == axis.ranker && other.key == axis.key;
      });
      if (duplicate) {
        throw InvalidArgument(
            fmt::format("{}: '{}' is swept twice{}.", entry.key_origin, axis.key,
                        axis.ranker.empty() ? "" : fmt::format(" in ranker '{}'", axis.ranker)));
      }
      axes.push_back(std::move(axis));
      origins.push_back(entry.key_origin);
    }
  }
  for (std::size_t i = 0; i < axes.size(); ++i) check_counts(axes[i], axes, rankers, origins[i]);
  return axes;
}

std::string print_sweep(const std::vector<SweepAxis>& axes) {
  std::vector<std::string> rankers;
  for (const SweepAxis& axis : axes) {
    if (std::find(rankers.begin(), rankers.end(), axis.ranker) == rankers.end())
      rankers.push_back(axis.ranker);
  }
  std::string text;
  for (const std::string& ranker : rankers) {
    text += ranker.empty() ? fmt::format("\n[{}]\n", kSweepTable)
                           : fmt::format("\n[{}.{}]\n", kSweepTable, toml_key(ranker));
    for (const SweepAxis& axis : axes) {
      if (axis.ranker != ranker) continue;
      std::vector<std::string> values;
      for (const SettingValue& value : axis.values) values.push_back(to_toml(value));
      text += fmt::format("{} = [{}]\n", axis.key, fmt::join(values, ", "));
    }
  }
  return text;
}

std::vector<SweepAxis> axes_of(const std::vector<SweepAxis>& axes, const RankerSettings& ranker) {
  std::vector<SweepAxis> held;
  for (const bool own : {false, true}) {
    for (const SweepAxis& axis : axes) {
      if (own ? axis.ranker != ranker.name : !axis.ranker.empty()) continue;
      const auto general = std::find_if(held.begin(), held.end(),
                                        [&](const SweepAxis& other) { return other.key == axis.key; });
      if (general == held.end()) {
        held.push_back(axis);
      } else {
        *general = axis;  // keeps its position, and with it the order of the grid
      }
    }
  }
  std::vector<SweepAxis> counting;
  std::copy_if(held.begin(), held.end(), std::back_inserter(counting), [&](const SweepAxis& axis) {
    return !axis.ranker.empty() || may_count(axis, held, ranker);
  });
  return counting;
}

}  // namespace olrank
