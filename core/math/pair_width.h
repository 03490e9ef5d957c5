#pragma once

#include <cmath>

#include "core/math/portable_exp.h"

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
