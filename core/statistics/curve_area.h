#pragma once

#include <span>

namespace olrank {

/// The mean height of a learning curve: its trapezoidal area divided by the rounds between the first and
/// last point. Comparing areas is more robust than comparing single points. NaN without points; the value
/// of a single point. `rounds` must ascend.
double curve_area(std::span<const double> rounds, std::span<const double> values);

}  // namespace olrank
