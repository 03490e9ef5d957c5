#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/settings/toml_document.h"
#include "core/settings/value.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// Numbers to draw from, written { from = 0.01, to = 10, scale = "log" }.
struct SweepRange {
  double from = 0.0;
  double to = 0.0;
  bool is_log = false;  // uniform in the logarithm
};

/// A ranker setting and the values that tuning tries for it.
struct SweepAxis {
  std::string ranker;  // the ranker's name; empty: all rankers
  std::string key;
  std::vector<SettingValue> values = {};  // of the setting's kind, distinct, in the order of the file
  std::optional<SweepRange> range = {};   // instead of values
};

inline const std::string kSweepTable = "sweep";

/// Whether a table of the file is [sweep] or [sweep.NAME], or a range in one of them.
bool is_sweep_table(const TomlDocument::Table& table);

/// The axes of the file's [sweep] and [sweep.NAME] tables, in file order. Throws InvalidArgument with the
/// location of the first mistake.
std::vector<SweepAxis> read_sweep(const TomlDocument& document, const std::vector<RankerSettings>& rankers);

/// The axes as TOML that reads back to the same axes; empty without axes.
std::string print_sweep(const std::vector<SweepAxis>& axes);

/// The axes of one ranker: those of its [sweep.NAME], and those of [sweep] that count for it and that its
/// own do not override.
std::vector<SweepAxis> axes_of(const std::vector<SweepAxis>& axes, const RankerSettings& ranker);

}  // namespace olrank
