#pragma once

#include <cmath>

#include "core/math/host_device.h"

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
