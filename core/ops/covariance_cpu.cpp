#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/error.h"
#include "core/math/any_cpu.h"
#include "core/ops/blas.h"
#include "core/ops/covariance.h"
#include "core/ops/inverse_factor.h"

namespace olrank {
namespace {

using blas::Transpose;

constexpr std::int64_t kTile = 256;            // a tile of A⁻¹ fills a quarter of a second-level cache
constexpr std::int64_t kPairsPerUpdate = 128;  // rows of Γ at a time
// Partial sums, V × V numbers each: enough for the threads, few enough for memory at V above 1,000.
constexpr std::int64_t kParts = 16;
constexpr std::int64_t kParametersPerBlock = 4096;
/// Squared distances below this share of the norms are computed from the difference itself.
constexpr double kCancelledDistance = 1e-6;

double distance_sq_of(std::int64_t columns, const double* a, const double* b) {
  double sum = 0.0;
  for (std::int64_t k = 0; k < columns; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

/// Calls body(first row, end row, first column, end column, worker) for the tiles of the lower triangle.
template <class Body>
void for_lower_tiles(ExecutionContext& context, std::int64_t n, const Body& body) {
  const std::int64_t side = (n + kTile - 1) / kTile;
  context.for_blocks(side * (side + 1) / 2, 1, [&](std::int64_t task, std::int64_t, int worker) {
    auto i = static_cast<std::int64_t>((std::sqrt(8.0 * static_cast<double>(task) + 1.0) - 1.0) / 2.0);
    while ((i + 1) * (i + 2) / 2 <= task) ++i;
    while (i * (i + 1) / 2 > task) --i;
    const std::int64_t j = task - i * (i + 1) / 2;
    body(i * kTile, std::min(n, (i + 1) * kTile), j * kTile, std::min(n, (j + 1) * kTile), worker);
  });
}

/// Copies a tile of the lower triangle to its mirror image, so that both halves have the same bits.
void mirror(std::int64_t n, std::int64_t row, std::int64_t row_end, std::int64_t column,
            std::int64_t column_end, double* a) {
  for (std::int64_t i = row; i < row_end; ++i) {
    const std::int64_t end = std::min(column_end, i);
    for (std::int64_t j = column; j < end; ++j) a[j * n + i] = a[i * n + j];
  }
}

void expand_in_tiles(ExecutionContext& context, const TangentShape& shape, TangentFactors docs,
                     double scale, bool pairs, std::int64_t p, double* rows) {
  context.for_blocks(p, 4 * kTile, [&](std::int64_t begin, std::int64_t end, int) {
    if (pairs) {
      expand_pairs(shape, docs, scale, begin, end, rows + begin, p);
    } else {
      expand_docs(shape, docs, scale, begin, end, rows + begin, p);
    }
  });
}

double update_by_block(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                       double scale, double* inverse) {
  const std::int64_t p = shape.parameters();
  const std::int64_t k = pairs.docs / 2;
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto gamma = scratch.take<double>(k * p);
  const auto product = scratch.take<double>(k * p);  // Pᵀ = ΓA⁻¹
  const auto corner = scratch.take<double>(k * k);
  expand_in_tiles(context, shape, pairs, std::sqrt(scale), true, p, gamma.data());
  context.for_blocks(p, kTile, [&](std::int64_t begin, std::int64_t end, int) {
    blas::gemm(Transpose::kNo, Transpose::kNo, k, end - begin, p, 1.0, gamma.data(), p, inverse + begin, p,
               0.0, product.data() + begin, p);
  });
  blas::gemm(Transpose::kNo, Transpose::kYes, k, k, p, 1.0, gamma.data(), p, product.data(), p, 0.0,
             corner.data(), k);
  for (std::int64_t i = 0; i < k; ++i) corner[i * (k + 1)] += 1.0;
  blas::cholesky(k, corner.data(), k);
  double log_det = 0.0;
  for (std::int64_t i = 0; i < k; ++i) log_det += 2.0 * log_of(corner[i * (k + 1)]);
  if (!std::isfinite(log_det)) throw NumericError("The pairs' gradients are not finite.");
  // With R Rᵀ = I + ΓP, the correction is QᵀQ for Q = R⁻¹Pᵀ.
  context.for_blocks(p, kTile, [&](std::int64_t begin, std::int64_t end, int) {
    blas::solve_lower(Transpose::kNo, k, end - begin, corner.data(), k, product.data() + begin, p);
  });
  for_lower_tiles(
      context, p,
      [&](std::int64_t row, std::int64_t row_end, std::int64_t column, std::int64_t column_end, int) {
        blas::gemm(Transpose::kYes, Transpose::kNo, row_end - row, column_end - column, k, -1.0,
                   product.data() + row, p, product.data() + column, p, 1.0, inverse + row * p + column, p);
        mirror(p, row, row_end, column, column_end, inverse);
      });
  return log_det;
}

}  // namespace

void set_inverse_covariance(std::int64_t parameters, double lambda, double* inverse) {
  std::fill_n(inverse, parameters * parameters, 0.0);
  for (std::int64_t k = 0; k < parameters; ++k) inverse[k * parameters + k] = 1.0 / lambda;
}

double update_inverse_covariance(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                                 double scale, double* inverse) {
  assert(pairs.docs % 2 == 0);
  double log_det = 0.0;
  for (std::int64_t first = 0; first < pairs.docs; first += 2 * kPairsPerUpdate) {
    const TangentFactors block{pairs.row(shape, first), std::min(2 * kPairsPerUpdate, pairs.docs - first)};
    log_det += update_by_block(context, shape, block, scale, inverse);
  }
  return log_det;
}

double inverse_covariance_of(ExecutionContext& context, const TangentShape& shape, TangentFactors history,
                             double lambda, double scale, double* inverse) {
  const std::int64_t p = shape.parameters();
  set_inverse_covariance(p, 1.0 / lambda, inverse);  // λI
  for (std::int64_t first = 0; first < history.docs; first += 2 * kPairsPerUpdate) {
    const TangentFactors block{history.row(shape, first),
                               std::min(2 * kPairsPerUpdate, history.docs - first)};
    const std::int64_t k = block.docs / 2;
    Scratch& scratch = context.scratch();
    const Scratch::Frame frame(scratch);
    const auto gamma = scratch.take<double>(k * p);
    expand_in_tiles(context, shape, block, std::sqrt(scale), true, p, gamma.data());
    for_lower_tiles(
        context, p,
        [&](std::int64_t row, std::int64_t row_end, std::int64_t column, std::int64_t column_end, int) {
          blas::gemm(Transpose::kYes, Transpose::kNo, row_end - row, column_end - column, k, 1.0,
                     gamma.data() + row, p, gamma.data() + column, p, 1.0, inverse + row * p + column, p);
        });
  }
  InverseFactor factor;
  double log_det = -static_cast<double>(p) * log_of(lambda);
  AlignedVector<double> cross;
  AlignedVector<double> corner;
  while (factor.size() < p) {
    const std::int64_t n = factor.size();
    const std::int64_t columns = std::min(factor.room(), p - n);
    cross.resize(n * columns);
    corner.resize(columns * columns);
    for (std::int64_t i = 0; i < columns; ++i) {
      const double* row = inverse + (n + i) * p;
      for (std::int64_t j = 0; j < n; ++j) cross[j * columns + i] = row[j];
      for (std::int64_t j = 0; j <= i; ++j) corner[i * columns + j] = row[n + j];
    }
    log_det += append(context, factor, columns, cross.data(), columns, corner.data(), columns);
  }
  invert_open_rows(context, factor);
  // A⁻¹ = L⁻ᵀ L⁻¹, from the tile's row block and those below it.
  for_lower_tiles(
      context, p,
      [&](std::int64_t row, std::int64_t row_end, std::int64_t column, std::int64_t column_end, int) {
        double beta = 0.0;
        for (std::int64_t b = row / InverseFactor::kBlock; b < factor.blocks(); ++b) {
          const std::int64_t stride = InverseFactor::stride(b);
          const std::int64_t first = b * InverseFactor::kBlock;
          const std::int64_t inner = std::min(p - first, InverseFactor::kBlock);
          // Columns beyond the block's width are zero and not stored.
          const std::int64_t rows = std::min(row_end, stride) - row;
          const std::int64_t columns = std::min(column_end, stride) - column;
          if (beta == 0.0 && (rows < row_end - row || columns < column_end - column)) {
            for (std::int64_t i = row; i < row_end; ++i) {
              std::fill_n(inverse + i * p + column, column_end - column, 0.0);
            }
            beta = 1.0;
          }
          blas::gemm(Transpose::kYes, Transpose::kNo, rows, columns, inner, 1.0, factor.block(b) + row,
                     stride, factor.block(b) + column, stride, beta, inverse + row * p + column, p);
          beta = 1.0;
        }
        mirror(p, row, row_end, column, column_end, inverse);
      });
  return log_det;
}

void inverse_covariance_gram(ExecutionContext& context, const TangentShape& shape, TangentFactors docs,
                             double scale, const double* inverse, double* m) {
  const std::int64_t p = shape.parameters();
  const std::int64_t count = docs.docs;
  const std::int64_t tiles = (p + kTile - 1) / kTile;
  Scratch& shared = context.scratch();
  const Scratch::Frame shared_frame(shared);
  const auto gradients = shared.take<double>(count * p);
  const std::int64_t used_parts = std::min(tiles, kParts);
  const auto parts = shared.take<double>(used_parts * (count * count));
  expand_in_tiles(context, shape, docs, std::sqrt(scale), false, p, gradients.data());
  // A⁻¹ is symmetric: with its tiles below the diagonal and half of those on it, Z = Σ G_i A⁻¹_ij G_jᵀ and
  // M = Z + Zᵀ. A part of Z takes every used_parts-th column of tiles, so that each part gets long and
  // short columns.
  context.for_blocks(used_parts, 1, [&](std::int64_t part, std::int64_t, int worker) {
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto product = scratch.take<double>(count * kTile);
    for (std::int64_t tile = part; tile < tiles; tile += used_parts) {
      const std::int64_t begin = tile * kTile;
      const std::int64_t columns = std::min(p - begin, kTile);
      const std::int64_t below = begin + columns;
      blas::gemm(Transpose::kNo, Transpose::kNo, count, columns, columns, 0.5, gradients.data() + begin, p,
                 inverse + begin * p + begin, p, 0.0, product.data(), columns);
      if (below < p) {
        blas::gemm(Transpose::kNo, Transpose::kNo, count, columns, p - below, 1.0, gradients.data() + below,
                   p, inverse + below * p + begin, p, 1.0, product.data(), columns);
      }
      blas::gemm(Transpose::kNo, Transpose::kYes, count, count, columns, 1.0, product.data(), columns,
                 gradients.data() + begin, p, tile == part ? 0.0 : 1.0, parts.data() + part * count * count,
                 count);
    }
  });
  for (std::int64_t part = 1; part < used_parts; ++part) {
    const double* numbers = parts.data() + part * count * count;
    for (std::int64_t i = 0; i < count * count; ++i) parts[i] += numbers[i];
  }
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < count; ++j) {
      m[i * count + j] = parts[i * count + j] + parts[j * count + i];
    }
  }
}

void add_to_diagonal(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                     double scale, std::span<double> diagonal) {
  assert(pairs.docs % 2 == 0);
  const std::int64_t p = shape.parameters();
  assert(std::ssize(diagonal) == p);
  context.for_blocks(p, kParametersPerBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto row = scratch.take<double>(end - begin);
    double* out = diagonal.data() + begin;
    for (std::int64_t pair = 0; pair < pairs.docs / 2; ++pair) {
      expand_pairs(shape, {pairs.row(shape, 2 * pair), 2}, 1.0, begin, end, row.data(), end - begin);
      for (std::int64_t k = 0; k < end - begin; ++k) {
        const double g = row[k];
        out[k] += scale * (g * g);
      }
    }
  });
}

void diagonal_gram(ExecutionContext& context, const TangentShape& shape, TangentFactors docs, double scale,
                   std::span<const double> weights, double* m) {
  const std::int64_t count = docs.docs;
  assert(std::ssize(weights) == shape.parameters());
  if (count == 0) return;
  const std::int64_t units = shape.units();
  const std::int64_t units_per_part = (units + kParts - 1) / kParts;
  const std::int64_t used_parts = (units + units_per_part - 1) / units_per_part;
  const std::int64_t widest = shape.most_columns() + 1;
  Scratch& shared = context.scratch();
  const Scratch::Frame shared_frame(shared);
  const auto parts = shared.take<double>(used_parts * (count * count));
  context.for_blocks(units, units_per_part, [&](std::int64_t begin, std::int64_t end, int worker) {
    Scratch& scratch = context.scratch(worker);
    const Scratch::Frame frame(scratch);
    const auto active = scratch.take<std::int64_t>(count);
    const auto root = scratch.take<double>(widest);
    const auto rows = scratch.take<double>(count * widest);
    const auto gram = scratch.take<double>(count * count);
    double* part = parts.data() + begin / units_per_part * count * count;
    std::fill_n(part, count * count, 0.0);
    const NetworkLayer* layer = shape.layers().data();
    std::int64_t before = 0;  // units of earlier layers
    for (std::int64_t number = begin; number < end; ++number) {
      while (number - before >= layer->rows) before += layer++->rows;
      const std::int64_t unit = number - before;
      const std::int64_t columns = layer->columns + (layer->has_bias() ? 1 : 0);
      std::int64_t rows_used = 0;
      for (std::int64_t doc = 0; doc < count; ++doc) {
        if (docs.row(shape, doc)[layer->delta + unit] != 0.0F) active[rows_used++] = doc;
      }
      const double* weight = weights.data() + layer->weight + unit * layer->columns;
      for (std::int64_t c = 0; c < layer->columns; ++c) root[c] = std::sqrt(scale * weight[c]);
      if (layer->has_bias()) {
        root[layer->columns] = std::sqrt(scale * weights[layer->bias + unit]);
      }
      for (std::int64_t i = 0; i < rows_used; ++i) {
        const float* factors = docs.row(shape, active[i]);
        const double delta{factors[layer->delta + unit]};
        double* row = rows.data() + i * columns;
        for (std::int64_t c = 0; c < layer->columns; ++c) {
          row[c] = delta * double{factors[layer->input + c]} * root[c];
        }
        if (layer->has_bias()) row[layer->columns] = delta * root[layer->columns];
      }
      blas::gemm(Transpose::kNo, Transpose::kYes, rows_used, rows_used, columns, 1.0, rows.data(), columns,
                 rows.data(), columns, 0.0, gram.data(), rows_used);
      for (std::int64_t i = 0; i < rows_used; ++i) {
        double* out = part + active[i] * count;
        const double* in = gram.data() + i * rows_used;
        for (std::int64_t j = 0; j <= i; ++j) out[active[j]] += in[j];
      }
    }
  });
  context.for_blocks(count * count, 4096, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      double sum = 0.0;
      for (std::int64_t part = 0; part < used_parts; ++part) sum += parts[part * count * count + i];
      m[i] = sum;
    }
  });
}

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
