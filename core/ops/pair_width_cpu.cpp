#include "core/ops/pair_width.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace olrank {

WidthHealth pair_width_sq(ExecutionContext& context, std::int64_t docs, const double* m, double* width_sq) {
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const std::span<double> diagonal = scratch.take<double>(static_cast<std::size_t>(docs));
  WidthHealth health;
  double largest = 0.0;
  for (std::int64_t i = 0; i < docs; ++i) {
    diagonal[static_cast<std::size_t>(i)] = m[i * docs + i];
    largest = std::max(largest, m[i * docs + i]);
  }
  for (const double value : diagonal) {
    if (!(value >= -kLostWidth * largest)) ++health.lost;
  }
  for (std::int64_t i = 0; i < docs; ++i) {
    const double own = diagonal[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < i; ++j) {
      const double other = diagonal[static_cast<std::size_t>(j)];
      double value = own + other - 2.0 * m[i * docs + j];
      if (!std::isfinite(value)) {
        ++health.lost;
        value = 0.0;
      } else if (value < 0.0) {
        ++health.negative;
        if (value < -kLostWidth * (own + other)) ++health.lost;
        value = 0.0;
      }
      width_sq[i * docs + j] = value;
    }
    width_sq[i * docs + i] = 0.0;
  }
  for (std::int64_t i = 0; i < docs; ++i) {
    for (std::int64_t j = i + 1; j < docs; ++j) width_sq[i * docs + j] = width_sq[j * docs + i];
  }
  return health;
}

}  // namespace olrank
