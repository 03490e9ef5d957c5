#pragma once

#include <span>
#include <vector>

namespace olrank {

/// The coefficients of y ≈ c_0 + Σ_k c_k x_k by least squares, c_0 first. `columns` holds the values of
/// each x_k. All are NaN where the columns do not decide them: too few points, or columns that depend
/// linearly.
std::vector<double> fit_least_squares(std::span<const double> y,
                                      const std::vector<std::vector<double>>& columns);

/// The mean height of a learning curve: its trapezoidal area divided by the rounds between the first and
/// last point. Comparing areas is more robust than comparing single points. NaN without points; the value
/// of a single point. `rounds` must ascend.
double curve_area(std::span<const double> rounds, std::span<const double> values);

}  // namespace olrank
