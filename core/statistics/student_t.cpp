#include "core/statistics/student_t.h"

#include <cmath>

namespace olrank {
namespace {

/// The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8) by Lentz's method.
/// It converges in a few dozen steps where x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr int kMostSteps = 10000;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1.0;
  double d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  double fraction = d;
  for (int m = 1; m <= kMostSteps; ++m) {
    const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    d = 1.0 / away_from_zero(1.0 + even * d);
    c = away_from_zero(1.0 + even / c);
    fraction *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    d = 1.0 / away_from_zero(1.0 + odd * d);
    c = away_from_zero(1.0 + odd / c);
    fraction *= c * d;
    if (std::abs(c * d - 1.0) < 1e-15) break;
  }
  return fraction;
}

}  // namespace

double regularised_incomplete_beta(double a, double b, double x) {
  if (!(a > 0.0 && b > 0.0 && x >= 0.0 && x <= 1.0)) return std::nan("");
  if (x == 0.0 || x == 1.0) return x;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(a, b, x) / a;
  return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

double student_t_two_sided(double t, double freedom) {
  if (std::isinf(t)) return 0.0;
  return regularised_incomplete_beta(0.5 * freedom, 0.5, freedom / (freedom + t * t));
}

double student_t_quantile(double probability, double freedom) {
  if (!(probability > 0.0 && probability < 1.0 && freedom > 0.0)) return std::nan("");
  const double outside = 2.0 * std::fmin(probability, 1.0 - probability);
  double low = 0.0;
  double high = 1.0;
  while (student_t_two_sided(high, freedom) > outside) high *= 2.0;
  // Bisect until no double lies between the bounds.
  for (;;) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    (student_t_two_sided(middle, freedom) > outside ? low : high) = middle;
  }
  return probability < 0.5 ? -high : high;
}

}  // namespace olrank
