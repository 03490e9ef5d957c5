#pragma once

#include <span>
#include <vector>

namespace olrank {

/// Holm-adjusted p-values: rejecting those below a level bounds the family-wise error rate by
/// that level under any dependence. Holm, "A simple sequentially rejective multiple test
/// procedure", Scandinavian Journal of Statistics 1979. NaN stays NaN and does not count as a
/// test.
std::vector<double> holm_adjusted(std::span<const double> p_values);

}  // namespace olrank
