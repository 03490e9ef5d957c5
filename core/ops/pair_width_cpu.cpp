#include "core/ops/pair_width.h"

#include <algorithm>
#include <span>

namespace olrank {

WidthHealth pair_width_sq(ExecutionContext& context, std::int64_t docs, const double* m, double* width_sq) {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const std::span<double> diagonal = scratch.take<double>(docs);
  WidthHealth health;
  double largest = 0.0;
  for (std::int64_t i = 0; i < docs; ++i) {
    diagonal[i] = m[i * docs + i];
    largest = std::max(largest, m[i * docs + i]);
  }
  for (const double value : diagonal) {
    if (is_lost_variance(value, largest)) ++health.lost;
  }
  for (std::int64_t i = 0; i < docs; ++i) {
    const double own = diagonal[i];
    for (std::int64_t j = 0; j < i; ++j) {
      const PairWidth width = pair_width(own, diagonal[j], m[i * docs + j]);
      health += {width.negative ? 1 : 0, width.lost ? 1 : 0};
      width_sq[i * docs + j] = width.squared;
    }
    width_sq[i * docs + i] = 0.0;
  }
  for (std::int64_t i = 0; i < docs; ++i) {
    for (std::int64_t j = i + 1; j < docs; ++j) width_sq[i * docs + j] = width_sq[j * docs + i];
  }
  return health;
}

}  // namespace olrank
