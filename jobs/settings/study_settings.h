#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/settings/enum_names.h"
#include "core/settings/schema.h"

namespace olrank {

/// How the α of each structure is chosen: the ranker's own setting, or a calibration that makes every
/// structure wrong as often as the full one.
enum class StudyAlpha { kGiven, kMatched };

template <>
struct EnumNames<StudyAlpha> {
  static constexpr std::array values = {std::pair{StudyAlpha::kGiven, std::string_view("given")},
                                        std::pair{StudyAlpha::kMatched, std::string_view("matched")}};
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

}  // namespace olrank
