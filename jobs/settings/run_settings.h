#pragma once

#include <nlohmann/json.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/settings/enum_names.h"
#include "core/settings/schema.h"
#include "core/settings/toml_document.h"
#include "core/settings/value.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// The machines on which a trial has the same bits.
enum class SameBitsOn { kOneCpuType, kAnyCpu };

template <>
struct EnumNames<SameBitsOn> {
  static constexpr std::array values = names_in_order<SameBitsOn>("one-cpu-type", "any-cpu");
};

/// Where and how an experiment runs. Only `device` and `same_bits_on` change
/// results, by rounding.
struct RunSettings {
  std::string device = "auto";
  std::int64_t threads = 0;
  std::int64_t jobs = 1;
  SameBitsOn same_bits_on = SameBitsOn::kOneCpuType;
  std::int64_t checkpoint_every = 1000;
  std::int64_t keep_checkpoints = 1;
  std::string out = "runs/latest";

  static const Schema& schema();
};

/// How `olrank tune` takes points from a [sweep].
struct SearchSettings {
  std::int64_t draws = 0;  // 0: every combination
  std::int64_t seed = 1;

  bool is_random() const { return draws > 0; }

  static const Schema& schema();
};

/// How the α of each structure is chosen: the ranker's own setting, or a calibration that makes every
/// structure wrong as often as the full one.
enum class StudyAlpha { kGiven, kMatched };

template <>
struct EnumNames<StudyAlpha> {
  static constexpr std::array values = names_in_order<StudyAlpha>("given", "matched");
};

/// The axes of a covariance study.
struct StudySettings {
  std::vector<std::string> structures = {"full",       "diagonal",   "diagonal-of-inverse", "none",
                                         "ensemble-2", "ensemble-5", "ensemble-10"};
  std::vector<std::int64_t> widths = {16, 32, 64, 100};
  std::vector<std::int64_t> depths = {2, 3};
  std::vector<double> noise_variances = {0.1, 0.01};
  StudyAlpha alpha = StudyAlpha::kGiven;
  std::int64_t calibration_rounds = 200;
  bool exact_widths = true;
  bool exact_training = false;

  static const Schema& schema();
};

inline nlohmann::ordered_json setting_json(const SettingValue& value) {
  return std::visit([](const auto& held) { return nlohmann::ordered_json(held); }, value);
}
/// {"key": value, …} of all settings of a table.
inline nlohmann::ordered_json table_json(const Schema& schema, const void* object) {
  auto json = nlohmann::ordered_json::object();
  for (const Setting& setting : schema.settings) json[setting.key] = setting_json(setting.read(object));
  return json;
}

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
