#pragma once

#include <cstdint>

#include "core/math/pair_width.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// How trustworthy a set of squared widths is.
struct WidthHealth {
  std::int64_t negative = 0;  // pairs with w² < 0, which were set to 0
  std::int64_t lost = 0;      // pairs and M_ii that have lost their digits

  WidthHealth& operator+=(const WidthHealth& other) {
    negative += other.negative;
    lost += other.lost;
    return *this;
  }
};

/// width_sq[i, j] is pair_width() of documents i and j, exactly symmetric; only M's lower triangle is read.
/// Both are [docs × docs] and may be the same array.
WidthHealth pair_width_sq(ExecutionContext& context, std::int64_t docs, const double* m, double* width_sq);

/// distance_sq [rows × rows] = ‖h_i − h_j‖² of the rows of h [rows × columns], exactly symmetric and never
/// negative: from the norms and products, and where these cancel from the difference itself. Runs on the
/// calling thread.
void row_distance_sq(std::int64_t rows, std::int64_t columns, const double* h, double* distance_sq);

}  // namespace olrank
