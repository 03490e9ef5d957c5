#include "core/statistics/curve_area.h"

#include <cassert>
#include <cmath>
#include <cstddef>

namespace olrank {

double curve_area(std::span<const double> rounds, std::span<const double> values) {
  assert(rounds.size() == values.size());
  if (values.empty()) return std::nan("");
  if (values.size() == 1) return values.front();
  double area = 0.0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    area += 0.5 * (rounds[i] - rounds[i - 1]) * (values[i] + values[i - 1]);
  }
  return area / (rounds.back() - rounds.front());
}

}  // namespace olrank
