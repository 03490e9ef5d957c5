#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/settings/toml_document.h"
#include "core/settings/value.h"
#include "models/ranker_settings.h"

namespace olrank {

/// A setting of a ranker and the values that tuning tries in it.
struct SweepAxis {
  std::string ranker;  // only this one, by name; empty speaks of all
  std::string key;
  std::vector<SettingValue> values;  // of the setting's kind, no two alike, in the order of the file
};

inline const std::string kSweepTable = "sweep";

/// Whether a table of the file is [sweep] or [sweep.NAME].
bool is_sweep_table(const TomlDocument::Table& table);

/// The axes of the file's [sweep] and [sweep.NAME] tables, in its order. Throws InvalidArgument with the
/// place of the first mistake.
std::vector<SweepAxis> read_sweep(const TomlDocument& document, const std::vector<RankerSettings>& rankers);

/// The axes as TOML; read back, they give themselves. Empty without axes.
std::string print_sweep(const std::vector<SweepAxis>& axes);

/// The axes that hold for one ranker: where both tables speak of a key, [sweep.NAME] wins.
std::vector<SweepAxis> axes_of(const std::vector<SweepAxis>& axes, std::string_view ranker);

}  // namespace olrank
