#pragma once

#include <cstdint>

#include "core/runtime/execution_context.h"

namespace olrank {

/// How trustworthy a set of squared widths is. Rounding makes the width of two equal documents a tiny
/// number of either sign; what is far below zero has lost its digits.
struct WidthHealth {
  std::int64_t negative = 0;  // pairs with w² < 0, which were set to 0
  std::int64_t lost = 0;      // of those, or of the M_ii, below −kLostWidth times what they came from

  WidthHealth& operator+=(const WidthHealth& other) {
    negative += other.negative;
    lost += other.lost;
    return *this;
  }
};

constexpr double kLostWidth = 1e-6;

/// width_sq[i, j] = M_ii + M_jj − 2 M_ij, at least 0, exactly symmetric; only M's lower triangle is read.
/// Both are [docs × docs] and may be the same array. Numbers that are not finite count as lost.
WidthHealth pair_width_sq(ExecutionContext& context, std::int64_t docs, const double* m, double* width_sq);

}  // namespace olrank
