#include "models/skeleton/width_comparison.h"

#include <algorithm>
#include <cmath>

namespace olrank {

Tally compare_widths(const ShownWidths& shown, std::vector<double>& ratios) {
  const std::size_t docs = shown.scores.size();
  ratios.clear();
  Tally turned;
  for (std::size_t a = 0; a < docs; ++a) {
    for (std::size_t b = a + 1; b < docs; ++b) {
      const double own = shown.own_sq[a * docs + b];
      const double exact = shown.exact_sq[a * docs + b];
      const double difference = std::fabs(shown.scores[a] - shown.scores[b]);
      ++turned.total;
      if (is_certain(shown.rule, difference, own) != is_certain(shown.rule, difference, exact))
        ++turned.count;
      if (exact > 0.0) ratios.push_back(std::sqrt(std::max(0.0, own) / exact));
    }
  }
  return turned;
}

}  // namespace olrank
