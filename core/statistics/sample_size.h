#pragma once

#include <cstddef>
#include <optional>

namespace olrank {

/// The probability with which a planned test finds a true difference of the planned size.
inline constexpr double kPower = 0.8;

/// Sample sizes beyond this are not planned.
inline constexpr std::size_t kLargestSample = 10000;

/// The fewest paired differences with which a two-sided t test at `level` finds a true mean `difference`
/// with probability `power`, if single differences scatter by `deviation`. Nothing beyond kLargestSample
/// or if an input is not finite or the difference is 0. Uses n ≥ (t_{1−level/2} + t_power)² (deviation /
/// difference)² with n − 1 degrees of freedom, which agrees with the noncentral t distribution to within
/// one or two units.
std::optional<std::size_t> sample_size(double difference, double deviation, double level,
                                       double power = kPower);

/// The inverse: the smallest true difference that a test with so many units finds with probability `power`.
/// NaN with fewer than two units.
double detectable_difference(std::size_t units, double deviation, double level, double power = kPower);

/// An upper limit, at 80 %, of the true deviation behind one that was estimated with so many degrees of
/// freedom. Plans from a few pilot values use it, because their own deviation is often much too small.
/// Browne, "On the use of a pilot sample for sample size determination", Statistics in Medicine 1995.
double planning_deviation(double deviation, double freedom);

}  // namespace olrank
