#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/statistics/mean_interval.h"

namespace olrank {

/// The moments are those of a sample: the mean is NaN without values, the others with fewer than two.
struct Moments {
  double mean = 0.0;
  double deviation = 0.0;
  double half_width = std::nan("");  // of the 95 % t interval of the mean; only where folds are known
};

inline Moments moments_of(const std::vector<double>& values) {
  return {mean_of(values), deviation_of(values)};
}

/// "0.4123 ± 0.0102"; without the half width if it is NaN.
inline std::string interval_text(double mean, double half_width, int digits) {
  const std::string text = fmt::format("{:.{}f}", mean, digits);
  return std::isfinite(half_width) ? fmt::format("{} ± {:.{}f}", text, half_width, digits) : text;
}

/// The clause says what the ± of a table means: `units` are "5 fold means" or "3 seeds".
inline std::string meaning_of_intervals(const std::string& units) {
  return fmt::format("± is half the width of the 95 % t interval of the mean over {}", units);
}

}  // namespace olrank
