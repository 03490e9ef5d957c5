#pragma once

#include <span>

namespace olrank {

/// The mean height of a learning curve over its rounds: its area by trapezoids, over the rounds between
/// first and last point. A curve is compared by it and not by one lucky point. NaN without points; of one
/// point, its value. `rounds` ascend.
double curve_area(std::span<const double> rounds, std::span<const double> values);

}  // namespace olrank
