#include "core/statistics/sample_size.h"

#include <cmath>

#include "core/statistics/student_t.h"

namespace olrank {

double detectable_difference(std::size_t units, double deviation, double level, double power) {
  if (units < 2) return std::nan("");
  const auto count = static_cast<double>(units);
  const double quantiles =
      student_t_quantile(1.0 - 0.5 * level, count - 1.0) + student_t_quantile(power, count - 1.0);
  return quantiles * deviation / std::sqrt(count);
}

std::optional<std::size_t> sample_size(double difference, double deviation, double level, double power) {
  const double wanted = std::abs(difference);
  if (!std::isfinite(wanted) || !std::isfinite(deviation) || wanted == 0.0) return std::nullopt;
  const auto enough = [&](std::size_t units) {
    return detectable_difference(units, deviation, level, power) <= wanted;
  };
  if (!enough(kLargestSample)) return std::nullopt;
  std::size_t too_few = 1;
  std::size_t many = kLargestSample;
  while (many - too_few > 1) {
    const std::size_t middle = (too_few + many) / 2;
    (enough(middle) ? many : too_few) = middle;
  }
  return many;
}

double planning_deviation(double deviation, double freedom) {
  // The 20 % quantile of chi-squared over its degrees of freedom, by Wilson and Hilferty's cube root.
  constexpr double kNormal = -0.841621;
  const double ninth = 2.0 / (9.0 * freedom);
  return deviation / std::pow(1.0 - ninth + kNormal * std::sqrt(ninth), 1.5);
}

}  // namespace olrank
