#pragma once

#include <span>
#include <vector>

namespace olrank {

/// p-values adjusted for all of them together: rejecting those below a level keeps the chance of one false
/// rejection or more at that level, however they depend on each other. Holm, "A simple sequentially
/// rejective multiple test procedure", Scandinavian Journal of Statistics 1979. NaN stays NaN and counts
/// for none.
std::vector<double> holm_adjusted(std::span<const double> p_values);

}  // namespace olrank
