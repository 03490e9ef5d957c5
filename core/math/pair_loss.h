#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/math/portable_exp.h"

// The logistic loss of a preference with z = f(first) − f(second), for the CPU and for kernels. A term
// folds repeated pairs: `weight` is the sum of their weights, `labels` that of those which the first
// document won.
namespace olrank {

/// 1/(1 + e^{−z}), without overflow and to full relative precision at both ends.
OLRANK_HOST_DEVICE inline double sigmoid(double z) {
  const double e = portable_exp_nonpositive(-std::fabs(z));
  return (z < 0.0 ? e : 1.0) / exact_add(1.0, e);
}

/// −log σ(z) = log(1 + e^{−z}).
OLRANK_HOST_DEVICE inline double logistic_loss(double z) {
  const double tail = std::log1p(portable_exp_nonpositive(-std::fabs(z)));
  return z < 0.0 ? tail - z : tail;
}

/// Cross-entropy of a term.
OLRANK_HOST_DEVICE inline double pair_term_loss(double z, double weight, double labels) {
  return labels * logistic_loss(z) + (weight - labels) * logistic_loss(-z);
}

/// Its derivative with respect to z; `probability` is σ(z).
OLRANK_HOST_DEVICE inline double pair_term_slope(double probability, double weight, double labels) {
  return weight * probability - labels;
}

/// Its second derivative; `probability` is σ(z).
OLRANK_HOST_DEVICE inline double pair_term_curvature(double probability, double weight) {
  return weight * (probability * (1.0 - probability));
}

/// One parameter's part of ‖θ − θ₀‖².
OLRANK_HOST_DEVICE inline double squared_distance(double theta, double centre) {
  const double distance = theta - centre;
  return distance * distance;
}

/// The derivative of prior_weight · (θ − θ₀)².
OLRANK_HOST_DEVICE inline double prior_slope(double prior_weight, double theta, double centre) {
  return 2.0 * prior_weight * (theta - centre);
}

}  // namespace olrank

// The scalar mathematics of losses of whole lists, for the CPU and for kernels.
namespace olrank {

/// log(1 + x) for 0 ≤ x ≤ 1, to full relative precision, without branches and calls, so that compilers can
/// vectorise loops over it. It is 2 artanh(t) with t = x/(2 + x); above √2 − 1, 1 + x is halved first, so
/// that |t| ≤ 0.172 and 11 terms of the series leave less than 1e-18.
OLRANK_HOST_DEVICE inline double log1p_of_unit(double x) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  // 1 or 0, by a mask: of a selection GCC 12 makes a branch.
  const std::uint64_t mask = std::uint64_t{0} - static_cast<std::uint64_t>(x > 0.41421356237309503);
  const std::uint64_t bits = mask & 0x3FF0000000000000U;
  double halved = 0.0;
  std::memcpy(&halved, &bits, sizeof halved);
  const double t = (x - halved) / (x + 2.0 + halved);
  const double u = t * t;
  double sum = 1.0 / 21.0;
  sum = sum * u + 1.0 / 19.0;
  sum = sum * u + 1.0 / 17.0;
  sum = sum * u + 1.0 / 15.0;
  sum = sum * u + 1.0 / 13.0;
  sum = sum * u + 1.0 / 11.0;
  sum = sum * u + 1.0 / 9.0;
  sum = sum * u + 1.0 / 7.0;
  sum = sum * u + 1.0 / 5.0;
  sum = sum * u + 1.0 / 3.0;
  sum = sum * u + 1.0;
  return halved * kLn2 + 2.0 * t * sum;
}

/// A pair of documents of different grades adds this to RankSVM's loss, with `lead` the score of the worse
/// document less that of the better one.
OLRANK_HOST_DEVICE inline double hinge_loss(double lead) {
  return 1.0 + lead > 0.0 ? 1.0 + lead : 0.0;
}

/// Its derivative with respect to `lead`; 0 at the kink.
OLRANK_HOST_DEVICE inline double hinge_slope(double lead) {
  return 1.0 + lead > 0.0 ? 1.0 : 0.0;
}

/// log(1 + e^lead), as logistic_loss(−lead) but without calls.
OLRANK_HOST_DEVICE inline double misorder_loss(double lead) {
  return (lead > 0.0 ? lead : 0.0) + log1p_of_unit(portable_exp_nonpositive(-std::fabs(lead)));
}

/// One document's part of the gradient of −Σ p_i G(y_i), p = softmax(s/σ); `sharpness` is 1/σ.
OLRANK_HOST_DEVICE inline double smooth_dcg_slope(double probability, double gain, double mean_gain,
                                                  double sharpness) {
  return probability * (mean_gain - gain) * sharpness;
}

/// e^x without calls, for |x| ≤ 700.
OLRANK_HOST_DEVICE inline double portable_exp(double x) {
  return x > 0.0 ? 1.0 / portable_exp_nonpositive(-x) : portable_exp_nonpositive(x);
}

/// condition ? yes : no by a mask: of that GCC 12 makes a branch.
OLRANK_HOST_DEVICE inline double selected(bool condition, double yes, double no) {
  const std::uint64_t mask = std::uint64_t{0} - static_cast<std::uint64_t>(condition);
  std::uint64_t yes_bits = 0;
  std::uint64_t no_bits = 0;
  std::memcpy(&yes_bits, &yes, sizeof yes);
  std::memcpy(&no_bits, &no, sizeof no);
  const std::uint64_t bits = (yes_bits & mask) | (no_bits & ~mask);
  double chosen = 0.0;
  std::memcpy(&chosen, &bits, sizeof chosen);
  return chosen;
}

/// A term says how likely a clock of rate e^z has rung by time 1, as 1 − e^{−a} = a · share with a = e^z,
/// and the derivative of the logarithm of that with respect to z. z is at most kSurely, where it has.
struct ClockTerm {
  double share;
  double slope;
};
constexpr double kSurely = 4.0;
OLRANK_HOST_DEVICE inline ClockTerm clock_term(double z) {
  constexpr double kMostRate = 54.598150033144236;  // e^kSurely
  const double a = kMostRate * portable_exp_nonpositive(z - kSurely);
  const double not_yet = portable_exp_nonpositive(-a);
  // Where (1 − e^{−a})/a cancels, its series, of which 12 terms leave less than 1e-17.
  double series = 1.0 / 479001600.0;  // 1/12!
  series = 1.0 / 39916800.0 - series * a;
  series = 1.0 / 3628800.0 - series * a;
  series = 1.0 / 362880.0 - series * a;
  series = 1.0 / 40320.0 - series * a;
  series = 1.0 / 5040.0 - series * a;
  series = 1.0 / 720.0 - series * a;
  series = 1.0 / 120.0 - series * a;
  series = 1.0 / 24.0 - series * a;
  series = 1.0 / 6.0 - series * a;
  series = 0.5 - series * a;
  series = 1.0 - series * a;
  const double share = selected(a < 0.25, series, (1.0 - not_yet) / (a + 1e-300));
  return {share, not_yet / share};
}

/// The sums over all clocks at one time are the logarithm of Π e^z · share, and the sum of their slopes.
struct ClockSums {
  double log_product;
  double slopes;
};

/// The integral over the time of the first other clock.
struct TiedFirst {
  double loss;   // −log of the probability
  double scale;  // of the weighted slopes
};

/// How likely `count` documents come before all others under Plackett–Luce, whatever their own order: the
/// probability that clocks with rates e^{s_i} all ring before the first of the others, ∫ e^{−τ} Π (1 −
/// e^{−τ e^{x_i}}) dτ, x_i = s_i − log Σ e^{s_j} over the others. Ma, Yi, Tang, Zhao, Hong, Chi and Mei,
/// "Learning-to-rank with partitioned preference", AISTATS 2021. The logarithm of the integrand is concave
/// in y = log τ, with its peak where e^y is 1 plus the sum of the slopes, so between 0 and log(count + 1),
/// and no narrower than 1/√(count + 1). The trapezoidal rule with this step is exact to 1e-13.
///
/// sums_at(y) returns the sums of z_i = x_i + y; add(weight) then adds their slopes with this weight to
/// what becomes, times the scale, −∂ loss/∂ x_i.
template <class SumsAt, class Add>
OLRANK_HOST_DEVICE inline TiedFirst tied_first(std::int64_t count, SumsAt sums_at, Add add) {
  constexpr double kNothing = 34.0;   // e^{−34} of the peak
  constexpr double kFarthest = 80.0;  // where rounding hides how the integrand falls
  const double width = 1.0 / std::sqrt(1.0 + static_cast<double>(count));
  const double step = 0.7 * width < 0.2 ? 0.7 * width : 0.2;
  double low = 0.0;
  double high = -2.0 * std::log(width);
  while (high - low > step) {
    const double middle = 0.5 * (low + high);
    (1.0 + sums_at(middle).slopes > portable_exp(middle) ? low : high) = middle;
  }
  const auto exponent = [&](double y) { return y - portable_exp(y) + sums_at(y).log_product; };
  const double peak = exponent(low);
  add(1.0);
  double total = 1.0;
  for (const double direction : {step, -step}) {
    double most = peak;
    for (int place = 1; place * step < kFarthest; ++place) {
      const double here = exponent(low + place * direction);
      if (here < most - kNothing) break;
      most = here > most ? here : most;
      const double weight = std::exp(here - peak);
      add(weight);
      total += weight;
    }
  }
  const double loss = -(peak + std::log(total * step));
  return {loss > 0.0 ? loss : 0.0, 1.0 / total};
}

}  // namespace olrank

// A pair's width from M, the inner products of the documents' gradients under A⁻¹.
namespace olrank {

/// A squared width this far below zero, relative to the numbers it was subtracted from, has lost its
/// digits. Rounding alone makes the width of two equal documents a tiny number of either sign.
constexpr double kLostWidth = 1e-6;

struct PairWidth {
  double squared = 0.0;   // at least 0, and finite
  bool negative = false;  // was below 0
  bool lost = false;      // has no correct digits: was far below 0 or not finite
};

/// w² = ‖g_i − g_j‖²_{A⁻¹} = M_ii + M_jj − 2 M_ij.
OLRANK_HOST_DEVICE inline PairWidth pair_width(double m_ii, double m_jj, double m_ij) {
  PairWidth width;
  width.squared = m_ii + m_jj - 2.0 * m_ij;
  if (!std::isfinite(width.squared)) {
    width.lost = true;
    width.squared = 0.0;
  } else if (width.squared < 0.0) {
    width.negative = true;
    width.lost = width.squared < -kLostWidth * (m_ii + m_jj);
    width.squared = 0.0;
  }
  return width;
}

/// Whether M_ii, which cannot be negative, has lost its digits. `largest` is that of the query's documents.
OLRANK_HOST_DEVICE inline bool is_lost_variance(double m_ii, double largest) {
  return !(m_ii >= -kLostWidth * largest);
}

/// (g_i − g_j)·(g_k − g_l) under A⁻¹, from M.
OLRANK_HOST_DEVICE inline double pair_product(double m_ik, double m_il, double m_jk, double m_jl) {
  return (m_ik - m_il) - (m_jk - m_jl);
}

}  // namespace olrank

// When the order of two documents counts as certain.
namespace olrank {

/// Rounding of a network's scores stays below this share of the largest sum of absolute terms behind one.
constexpr double kScoreRounding = 1e-6;

/// Score differences up to this are rounding.
OLRANK_HOST_DEVICE inline double rounding_of_scores(float largest_magnitude) {
  return kScoreRounding * double{largest_magnitude};
}

struct CertaintyRule {
  double alpha = 0.0;             // α: the margin of a certain order exceeds α times its width
  double least_difference = 0.0;  // of scores; differences up to it are rounding
};

/// σ(z) − α w > ½ for the score difference z and the squared width w²: "Learning neural ranking models
/// online from implicit user feedback", WWW 2022, Lemma 3.3 with ε = 0. False for NaN.
OLRANK_HOST_DEVICE inline bool is_certain(const CertaintyRule& rule, double difference, double width_sq) {
  if (!(difference > rule.least_difference)) return false;
  // σ(z) − ½ ≤ z/4 for z ≥ 0 rejects most uncertain orders without a root or an exponential.
  const double most = 0.25 * difference;
  const double width_term_sq = rule.alpha * rule.alpha * width_sq;
  if (!(most > 0.0) || !(most * most > width_term_sq)) return false;
  // A convergent of tanh's continued fraction that stays below it accepts most certain ones; the factor
  // leaves room for the rounding of all these numbers. Decides as the line below does.
  const double half_sq = 0.25 * difference * difference;  // (z/2)²
  const double least =
      (0.25 - 1e-12) * difference * (105.0 + 10.0 * half_sq) / (105.0 + half_sq * (45.0 + half_sq));
  if (least > 0.0 && least * least > width_term_sq) return true;
  // σ(z) − ½ = tanh(z/2)/2, without the cancellation at small z.
  return 0.5 * std::tanh(0.5 * difference) > std::sqrt(width_term_sq);
}

/// An ensemble member's vote for the first of two documents: its score is higher by more than rounding.
OLRANK_HOST_DEVICE inline bool votes_for_first(float first, float second, double least_difference) {
  return double{first} - double{second} > least_difference;
}

}  // namespace olrank
