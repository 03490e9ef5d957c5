#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/math/portable_exp.h"

// The standard normal quantile by polynomials, without libm's or CUDA's logarithm, so that CPU and GPU give
// the same bits: only +, −, ×, ÷ and √ in double, each correctly rounded on both sides.
namespace olrank {

/// ln x for positive, normal x; relative error below 4e-16. x = 2^e·m with m in (√½, √2], and
/// ln m = 2 artanh((m−1)/(m+1)) by its series, whose 12 terms leave less than 1e-19 at |s| ≤ 0.1716.
OLRANK_HOST_DEVICE inline double portable_log(double x) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  int exponent = static_cast<int>((bits >> 52) & 0x7FFU) - 1023;
  bits = (bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL;
  double mantissa = 0.0;
  std::memcpy(&mantissa, &bits, sizeof mantissa);
  if (mantissa > 1.4142135623730951) {
    mantissa = exact_mul(mantissa, 0.5);
    ++exponent;
  }
  const double s = exact_add(mantissa, -1.0) / exact_add(mantissa, 1.0);
  const double z = exact_mul(s, s);
  double series = 0.0;
  for (int k = 11; k >= 1; --k) {
    series = exact_mul(exact_add(series, 1.0 / (2 * k + 1)), z);
  }
  const double twice_s = exact_mul(2.0, s);
  const double log_mantissa = exact_add(twice_s, exact_mul(twice_s, series));
  constexpr double kLn2High = 0x1.62e42fefa3800p-1;  // 42 bits: times any exponent it is exact
  constexpr double kLn2Low = 0x1.ef35793c76730p-45;
  const double e = exponent;
  return exact_add(exact_mul(e, kLn2High), exact_add(log_mantissa, exact_mul(e, kLn2Low)));
}

namespace detail {

OLRANK_HOST_DEVICE inline double horner(const double (&coefficients)[8], double x) {
  double sum = coefficients[7];
  for (int i = 6; i >= 0; --i) sum = exact_add(exact_mul(sum, x), coefficients[i]);
  return sum;
}

}  // namespace detail

/// The standard normal quantile for 0 < u < 1; relative error about 1e-15. Algorithm AS 241 (PPND16):
/// Wichura, "The percentage points of the normal distribution", Applied Statistics 37 (1988).
OLRANK_HOST_DEVICE inline double normal_quantile(double u) {
  constexpr double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                           1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                           3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr double b[8] = {1.0,
                           4.2313330701600911252e+1,
                           6.8718700749205790830e+2,
                           5.3941960214247511077e+3,
                           2.1213794301586595867e+4,
                           3.9307895800092710610e+4,
                           2.8729085735721942674e+4,
                           5.2264952788528545610e+3};
  constexpr double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                           3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                           2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double d[8] = {1.0,
                           2.05319162663775882187e0,
                           1.67638483018380384940e0,
                           6.89767334985100004550e-1,
                           1.48103976427480074590e-1,
                           1.51986665636164571966e-2,
                           5.47593808499534494600e-4,
                           1.05075007164441684324e-9};
  constexpr double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                           2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                           2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double f[8] = {1.0,
                           5.99832206555887937690e-1,
                           1.36929880922735805310e-1,
                           1.48753612908506148525e-2,
                           7.86869131145613259100e-4,
                           1.84631831751005468180e-5,
                           1.42151175831644588870e-7,
                           2.04426310338993978564e-15};
  const double q = exact_add(u, -0.5);
  if (q >= -0.425 && q <= 0.425) {
    const double r = exact_add(0.180625, -exact_mul(q, q));
    return exact_mul(q, detail::horner(a, r)) / detail::horner(b, r);
  }
  const double tail = q < 0.0 ? u : exact_add(1.0, -u);
  double r = std::sqrt(-portable_log(tail));
  double x = 0.0;
  if (r <= 5.0) {
    r = exact_add(r, -1.6);
    x = detail::horner(c, r) / detail::horner(d, r);
  } else {
    r = exact_add(r, -5.0);
    x = detail::horner(e, r) / detail::horner(f, r);
  }
  return q < 0.0 ? -x : x;
}

}  // namespace olrank

// Noise on the labels of an ensemble member's training, γ ~ N(0, ν²) a pair. The loss is linear in the
// labels, so the noise of a pair's repetitions counts as their sum, N(0, weight ν²): one draw a term has
// the distribution of one draw a repetition. CPU and kernels give the same bits.
namespace olrank {

/// A term's labels with noise; `deviation` is ν, `normal` a standard normal draw.
OLRANK_HOST_DEVICE inline double noisy_labels(double labels, double weight, double deviation,
                                              double normal) {
  return exact_add(labels, exact_mul(exact_mul(deviation, std::sqrt(weight)), normal));
}

/// A term's noise grows by this change when the weight of its pairs goes from `before` to `after`. The
/// changes of any course add up to the noise of the last weight.
OLRANK_HOST_DEVICE inline double noise_change(double before, double after, double deviation,
                                              double normal) {
  return exact_mul(exact_mul(deviation, exact_add(std::sqrt(after), -std::sqrt(before))), normal);
}

/// Labels of some of a term's pairs, with their share of the noise of all: of weight `weight` out of `all`.
OLRANK_HOST_DEVICE inline double noisy_labels_of_share(double labels, double weight, double all,
                                                       double deviation, double normal) {
  if (weight == 0.0) return labels;
  return exact_add(labels, exact_mul(weight / all, noisy_labels(0.0, all, deviation, normal)));
}

/// The share of a term's noise that each of its repetitions carries.
OLRANK_HOST_DEVICE inline double noise_per_pair(double noisy, double labels, double weight) {
  return (noisy - labels) / weight;
}

/// The labels of one repetition that is a term of its own.
OLRANK_HOST_DEVICE inline double noisy_pair_labels(double weight, int first_wins, double noise) {
  return weight * first_wins + noise;
}

/// cos(πx) for 0 ≤ x ≤ 1, absolute error below 3e-16, by + and × alone: the same bits on CPU and GPU and in
/// every vector width. It is sin(πt) with t = ½ − x, and that by its series, whose 12 terms leave less than
/// 1e-17.
OLRANK_HOST_DEVICE inline double cosine_of_half_turns(double x) {
  const double t = exact_mul(3.14159265358979323846, exact_add(0.5, -x));
  const double z = exact_mul(t, t);
  double sum = -1.0 / 25852016738884976640000.0;  // 1/23!
  sum = exact_add(exact_mul(sum, z), 1.0 / 51090942171709440000.0);
  sum = exact_add(exact_mul(sum, z), -1.0 / 121645100408832000.0);
  sum = exact_add(exact_mul(sum, z), 1.0 / 355687428096000.0);
  sum = exact_add(exact_mul(sum, z), -1.0 / 1307674368000.0);
  sum = exact_add(exact_mul(sum, z), 1.0 / 6227020800.0);
  sum = exact_add(exact_mul(sum, z), -1.0 / 39916800.0);
  sum = exact_add(exact_mul(sum, z), 1.0 / 362880.0);
  sum = exact_add(exact_mul(sum, z), -1.0 / 5040.0);
  sum = exact_add(exact_mul(sum, z), 1.0 / 120.0);
  sum = exact_add(exact_mul(sum, z), -1.0 / 6.0);
  return exact_add(t, exact_mul(t, exact_mul(sum, z)));
}

/// cos(2πx), cos(3πx) and cos(4πx) from cos(πx), absolute error below 5e-15.
struct HigherCosines {
  static constexpr int kTerms = 3;

  double of[kTerms];
};
OLRANK_HOST_DEVICE inline HigherCosines higher_cosines(double cosine) {
  const double second = exact_add(exact_mul(2.0, exact_mul(cosine, cosine)), -1.0);
  const double third = exact_mul(cosine, exact_add(exact_mul(2.0, second), -1.0));
  const double fourth = exact_add(exact_mul(2.0, exact_mul(second, second)), -1.0);
  return {{second, third, fourth}};
}

}  // namespace olrank
