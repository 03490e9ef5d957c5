#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "core/statistics/quantile.h"

namespace olrank {

/// Compares the widths that a ranker used with the exact ones.
struct WidthRatio {
  double median = 0.0;
  double p10 = 0.0;
  double p90 = 0.0;
};

/// Quantiles of own/exact widths, by linear interpolation; none without a ratio.
inline std::optional<WidthRatio> width_ratio_of(std::vector<double> ratios) {
  if (ratios.empty()) return std::nullopt;
  std::sort(ratios.begin(), ratios.end());
  return WidthRatio{sorted_quantile(ratios, 0.5), sorted_quantile(ratios, 0.1),
                    sorted_quantile(ratios, 0.9)};
}

}  // namespace olrank
