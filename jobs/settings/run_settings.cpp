#include "jobs/settings/run_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/settings/setting_sources.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "models/ranker_factory.h"

namespace olrank {

const Schema& RunSettings::schema() {
  using S = RunSettings;
  static const Schema schema =
      SchemaBuilder<S>("run", "Where and how an experiment runs.")
          .field("device", &S::device,
                 "`auto`, `cpu`, `cuda`, `cuda:N`, or GPUs that share the trials: `cuda:all`, `cuda:0-3`, "
                 "`cuda:1,3`; `auto` means the faster one of the CPU and one GPU")
          .flag("device")
          .field("threads", &S::threads, "CPU threads shared by all trials; 0 uses every core", {0, 4096})
          .flag("threads")
          .field("jobs", &S::jobs, "trials to run in parallel; at least one on each GPU", {1, 4096})
          .flag("jobs")
          .field("same_bits_on", &S::same_bits_on,
                 "`any-cpu` gives the same bits on every x86-64 CPU, without LibTorch also on ARM, at less "
                 "than half the speed")
          .flag("same-bits-on")
          .field("checkpoint_every", &S::checkpoint_every, "rounds between checkpoints", {1})
          .unit("rounds")
          .field("keep_checkpoints", &S::keep_checkpoints,
                 "checkpoints that a trial keeps; a damaged one is passed over for the one before it",
                 {1, 9})
          .field("out", &S::out, "output folder of the experiment")
          .flag("out")
          .build();
  return schema;
}

const Schema& SearchSettings::schema() {
  using S = SearchSettings;
  static const Schema schema =
      SchemaBuilder<S>("search",
                       "How `olrank tune` takes points from a `[sweep]`; other commands refuse this table.")
          .field("draws", &S::draws,
                 "points drawn at random for each ranker, where ranges may be swept; 0 tries every "
                 "combination",
                 {0, 100000})
          .flag("draws")
          .field("seed", &S::seed, "random seed of the draws; more draws keep the first ones", {0})
          .build();
  return schema;
}

const Schema& StudySettings::schema() {
  using S = StudySettings;
  static const Schema schema =
      SchemaBuilder<S>(
          "study", "The comparison that `olrank bench covariance` makes; other commands refuse this table.")
          .field("structures", &S::structures,
                 "covariances, `inducing-N` with N as the budget, and `ensemble-N`; each is compared with "
                 "`full`")
          .flag("structures")
          .field("widths", &S::widths, "network widths", {1})
          .symbol("m")
          .flag("widths")
          .field("depths", &S::depths, "network depths, in layers of weights", {2})
          .flag("depths")
          .field("noise_variances", &S::noise_variances, "ensemble noise variances; all combinations run",
                 {0})
          .symbol("ν²")
          .flag("noise-variances")
          .field("alpha", &S::alpha,
                 "`given` uses the ranker's own α for every structure; `matched` chooses α so that each "
                 "structure is wrong as often as `full`; also `--alpha matched`")
          .field("calibration_rounds", &S::calibration_rounds,
                 "rounds per value of α, on queries of the validation set", {1})
          .unit("rounds")
          .field(
              "exact_widths", &S::exact_widths,
              "also maintain the full covariance in every trial, and compare widths and decisions with it")
          .field("exact_training", &S::exact_training,
                 "`full` trains on its whole history in every round that brings pairs, whatever `retrain` "
                 "says; the others follow `retrain`")
          .build();
  return schema;
}

namespace {

/// "NAME" of [sweep.NAME], empty for [sweep].
std::string ranker_of(const TomlDocument::Table& table) {
  return table.name == kSweepTable ? "" : table.name.substr(kSweepTable.size() + 1);
}

/// Whether the table is the value of a key, { from = …, to = … }, and not of a ranker.
bool is_range(const TomlDocument::Table& table) {
  return std::any_of(table.entries.begin(), table.entries.end(),
                     [](const auto& entry) { return entry.key == "from" || entry.key == "to"; });
}

/// "full" and "alpha" of the range [sweep.full] alpha = { … }.
std::pair<std::string, std::string> ranker_and_key(const TomlDocument::Table& range) {
  const std::size_t dot = range.name.rfind('.');
  const std::string table = range.name.substr(0, dot);
  return {table == kSweepTable ? "" : table.substr(kSweepTable.size() + 1), range.name.substr(dot + 1)};
}

void check_ranker(const TomlDocument& document, const TomlDocument::Table& table,
                  const std::vector<RankerSettings>& rankers, const std::string& name) {
  std::vector<std::string> names;
  names.reserve(rankers.size());
  for (const RankerSettings& ranker : rankers) names.push_back(ranker.name);
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return;
  // An unquoted name with a dot is a nested table, and the outer table is empty.
  const bool holds_others = std::any_of(
      document.tables.begin(), document.tables.end(),
      [&](const TomlDocument::Table& other) { return other.name.rfind(table.name + ".", 0) == 0; });
  if (table.entries.empty() && holds_others) return;
  throw_error<InvalidArgument>("{}: Unknown ranker '{}'. {}", table.origin, name,
                               did_you_mean(name, names));
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

const Setting& swept_setting(const std::string& ranker, const std::string& key, const std::string& origin) {
  const Schema& schema = RankerSettings::schema();
  const Setting* setting = schema.find(key);
  if (setting == nullptr) {
    if (const DroppedSetting* dropped = dropped_setting(schema.table, key))
      throw_error<InvalidArgument>("{}: '{}' {}", origin, key, dropped->sentence);
    throw_error<InvalidArgument>("{}: Unknown key '{}' in [{}]. {}", origin, key,
                                 ranker.empty() ? kSweepTable : kSweepTable + "." + ranker,
                                 did_you_mean(key, schema.keys()));
  }
  if (key == "name") {
    throw_error<InvalidArgument>("{}: 'name' cannot be swept; names are generated from the swept values.",
                                 origin);
  }
  return *setting;
}

SweepAxis read_range(const TomlDocument::Table& table) {
  const auto [ranker, key] = ranker_and_key(table);
  const Setting& setting = swept_setting(ranker, key, table.origin);
  if (setting.kind != SettingKind::kInteger && setting.kind != SettingKind::kReal) {
    throw_error<InvalidArgument>("{}: '{}' is no number, so it has no range; list its values.",
                                 table.origin, key);
  }
  SweepAxis axis{.ranker = ranker, .key = key, .range = SweepRange{}};
  std::optional<double> from;
  std::optional<double> to;
  for (const TomlDocument::Entry& entry : table.entries) {
    if (entry.key == "from" || entry.key == "to") {
      RankerSettings scratch;
      assign_setting(RankerSettings::schema(), &scratch, key, entry.value, entry.origin);
      (entry.key == "from" ? from : to) =
          std::get<double>(convert_setting(SettingKind::kReal, setting.read(&scratch)));
    } else if (entry.key == "scale") {
      const auto* scale = std::get_if<std::string>(&entry.value);
      if (scale == nullptr || (*scale != "linear" && *scale != "log"))
        throw_error<InvalidArgument>("{}: 'scale' must be \"linear\" or \"log\".", entry.origin);
      axis.range->is_log = *scale == "log";
    } else {
      throw_error<InvalidArgument>("{}: A range has from, to and scale, not '{}'.", entry.key_origin,
                                   entry.key);
    }
  }
  if (!from || !to || !(*from < *to)) {
    throw_error<InvalidArgument>(
        "{}: The range of '{}' needs 'from' and a larger 'to', such as {{ from = 0.01, to = 10 }}.",
        table.origin, key);
  }
  if (axis.range->is_log && *from <= 0.0)
    throw_error<InvalidArgument>("{}: With scale = \"log\", 'from' must be above 0, not {}.", table.origin,
                                 *from);
  axis.range->from = *from;
  axis.range->to = *to;
  return axis;
}

SweepAxis read_axis(const std::string& ranker, const TomlDocument::Entry& entry) {
  const Schema& schema = RankerSettings::schema();
  const Setting* setting = &swept_setting(ranker, entry.key, entry.key_origin);
  SweepAxis axis{.ranker = ranker, .key = entry.key};
  for (const SettingValue& item : items_of(entry.value)) {
    RankerSettings scratch;
    assign_setting(schema, &scratch, entry.key, item, entry.origin);
    const SettingValue value = setting->read(&scratch);
    if (std::find(axis.values.begin(), axis.values.end(), value) != axis.values.end()) {
      throw_error<InvalidArgument>("{}: '{}' contains {} twice.", entry.origin, entry.key, to_toml(value));
    }
    axis.values.push_back(value);
  }
  if (axis.values.empty()) {
    throw_error<InvalidArgument>("{}: '{}' is empty; it needs at least one value to try.", entry.origin,
                                 entry.key);
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
  throw_error<InvalidArgument>("{}: '{}' does not apply to ranker '{}': {}.", origin, axis.key,
                               ignoring->name, *why_ignored(*ignoring, axis.key));
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
      throw_error<InvalidArgument>("{}: Write this table as [{}].", table.origin, table.name);
    }
    const auto add = [&](SweepAxis axis, const std::string& origin) {
      const bool duplicate = std::any_of(axes.begin(), axes.end(), [&](const SweepAxis& other) {
        return other.ranker == axis.ranker && other.key == axis.key;
      });
      if (duplicate) {
        throw_error<InvalidArgument>(
            "{}: '{}' is swept twice{}.", origin, axis.key,
            axis.ranker.empty() ? "" : fmt::format(" in ranker '{}'", axis.ranker));
      }
      axes.push_back(std::move(axis));
      origins.push_back(origin);
    };
    if (is_range(table)) {
      check_ranker(document, table, rankers, ranker_and_key(table).first);
      add(read_range(table), table.origin);
      continue;
    }
    check_ranker(document, table, rankers, ranker_of(table));
    for (const TomlDocument::Entry& entry : table.entries)
      add(read_axis(ranker_of(table), entry), entry.key_origin);
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
      if (axis.range) {
        text += fmt::format("{} = {{ from = {}, to = {}, scale = \"{}\" }}\n", axis.key, axis.range->from,
                            axis.range->to, axis.range->is_log ? "log" : "linear");
        continue;
      }
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
      const auto general = std::ranges::find(held, axis.key, &SweepAxis::key);
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
