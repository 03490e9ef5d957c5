#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

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
  const auto quantile = [&](double share) {
    const double place = share * static_cast<double>(ratios.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, ratios.size() - 1);
    return ratios[below] + (place - static_cast<double>(below)) * (ratios[above] - ratios[below]);
  };
  return WidthRatio{quantile(0.5), quantile(0.1), quantile(0.9)};
}

}  // namespace olrank
