#pragma once

#include <cmath>

#include "core/math/host_device.h"

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
