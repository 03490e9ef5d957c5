#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace olrank {

/// The value below which a share of a sample lies, by linear interpolation between neighbours. The sample
/// must be sorted and not empty.
inline double sorted_quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace olrank
