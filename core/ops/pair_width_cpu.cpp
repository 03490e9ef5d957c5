#include "core/ops/pair_width.h"

#include <algorithm>
#include <span>

#include "core/ops/blas.h"

namespace olrank {
namespace {

/// Squared distances below this share of the norms are computed from the difference itself.
constexpr double kCancelledDistance = 1e-6;

double distance_sq_of(std::int64_t columns, const double* a, const double* b) {
  double sum = 0.0;
  for (std::int64_t k = 0; k < columns; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

}  // namespace

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

void row_distance_sq(std::int64_t rows, std::int64_t columns, const double* h, double* distance_sq) {
  blas::gemm(blas::Transpose::kNo, blas::Transpose::kYes, rows, rows, columns, 1.0, h, columns, h, columns,
             0.0, distance_sq, rows);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < i; ++j) {
      const double together = distance_sq[i * (rows + 1)] + distance_sq[j * (rows + 1)];
      double found = together - 2.0 * distance_sq[i * rows + j];
      if (found < kCancelledDistance * together)
        found = distance_sq_of(columns, h + i * columns, h + j * columns);
      distance_sq[i * rows + j] = distance_sq[j * rows + i] = found;
    }
  }
  for (std::int64_t i = 0; i < rows; ++i) distance_sq[i * (rows + 1)] = 0.0;
}

}  // namespace olrank
