#include "cuda/ops/inverse_covariance.h"

#include <cmath>

#include "core/math/pair_loss.h"
#include "cuda/ops/block_sum.cuh"
#include "cuda/runtime/grid.cuh"
#include "cuda/runtime/work.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kWhitenColumns = 32;

__device__ void reset_inverse_kernel(const Grid& grid, std::int64_t parameters, double lambda,
                                     double* inverse) {
  const std::int64_t column = std::int64_t{grid.block.y} * kThreads + threadIdx.x;
  const std::int64_t row = grid.block.x;  // a grid's y would be too small
  if (column < parameters) inverse[row * parameters + column] = column == row ? 1.0 / lambda : 0.0;
}

// g [docs × p]. Grid: parts of the parameters, documents; a thread owns a number.
__device__ void expand_gradients_kernel(const Grid& grid, const FactorRows& rows, const LayerTable& layers,
                                        double* g) {
  const std::int64_t k = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  const std::int64_t doc = grid.block.y;
  if (k < layers.parameters)
    g[doc * layers.parameters + k] = gradient_number(layers, rows.values + doc * rows.stride, k);
}

// q [count × p] = √scale D⁻¹ Δw. A block owns 32 columns: its threads gather the pairs' differences into
// shared memory, then take the rows.
__device__ void whiten_pairs_kernel(const Grid& grid, std::int64_t parameters, const double* w,
                                    double root_scale, const PreferencePair* pairs, std::int64_t count,
                                    const double* inverse_corner, double* q,
                                    const CovarianceStatus* status) {
  if (status->failed != 0) return;
  auto* differences = dynamic_shared<double>();
  const std::int64_t near = threadIdx.x % kWhitenColumns;
  const std::int64_t column = std::int64_t{grid.block.x} * kWhitenColumns + near;
  const std::int64_t lane = threadIdx.x / kWhitenColumns;
  constexpr std::int64_t kLanes = kThreads / kWhitenColumns;
  for (std::int64_t s = lane; s < count && column < parameters; s += kLanes) {
    differences[s * kWhitenColumns + near] =
        root_scale * (w[pairs[s].winner * parameters + column] - w[pairs[s].loser * parameters + column]);
  }
  __syncthreads();
  if (column >= parameters) return;
  for (std::int64_t i = lane; i < count; i += kLanes) {
    double value = 0.0;
    for (std::int64_t j = 0; j <= i; ++j) {
      value += inverse_corner[i * count + j] * differences[j * kWhitenColumns + near];
    }
    q[i * parameters + column] = value;
  }
}

// Grid: rows, parts of the columns; a thread owns a number above the diagonal.
__device__ void mirror_lower_kernel(const Grid& grid, std::int64_t n, double* a) {
  const std::int64_t column = std::int64_t{grid.block.y} * kThreads + threadIdx.x;
  const std::int64_t row = grid.block.x;
  if (column > row && column < n) a[row * n + column] = a[column * n + row];
}

/// A block's share of the columns of n rows.
Blocks rows_grid(std::int64_t n) {
  return {n, parts_of(n, kThreads)};
}

__device__ double gram_at(const double* m, std::int64_t docs, std::int32_t i, std::int32_t j) {
  return i > j ? m[i * docs + j] : m[j * docs + i];
}

// One block. The factor is computed column by column, where a thread owns rows below the pivot; then each
// thread computes columns of the inverse. Sums are in a fixed order, in double.
__device__ void factor_corner_kernel(const Grid& /*grid*/, std::int64_t docs, const double* m,
                                     const PreferencePair* pairs, std::int64_t count, double* d,
                                     double* inverse, CovarianceStatus* status) {
  if (status->failed != 0) return;
  for (std::int64_t at = threadIdx.x; at < count * count; at += kThreads) {
    const PreferencePair& one = pairs[at / count];
    const PreferencePair& two = pairs[at % count];
    const double product =
        pair_product(gram_at(m, docs, one.winner, two.winner), gram_at(m, docs, one.winner, two.loser),
                     gram_at(m, docs, one.loser, two.winner), gram_at(m, docs, one.loser, two.loser));
    d[at] = product + (at / count == at % count ? 1.0 : 0.0);
  }
  __syncthreads();
  for (std::int64_t k = 0; k < count; ++k) {
    double pivot = d[k * count + k];
    for (std::int64_t j = 0; j < k; ++j) pivot -= d[k * count + j] * d[k * count + j];
    if (!(pivot > 0.0) || !std::isfinite(pivot)) {
      if (threadIdx.x == 0) status->failed = 1;
      return;
    }
    const double root = std::sqrt(pivot);
    __syncthreads();
    if (threadIdx.x == 0) d[k * count + k] = root;
    for (std::int64_t i = k + 1 + threadIdx.x; i < count; i += kThreads) {
      double value = d[i * count + k];
      for (std::int64_t j = 0; j < k; ++j) value -= d[i * count + j] * d[k * count + j];
      d[i * count + k] = value / root;
    }
    __syncthreads();
  }
  for (std::int64_t column = threadIdx.x; column < count; column += kThreads) {
    for (std::int64_t i = 0; i < count; ++i) {
      double value = i == column ? 1.0 : 0.0;
      for (std::int64_t j = column; j < i; ++j) value -= d[i * count + j] * inverse[j * count + column];
      inverse[i * count + column] = i < column ? 0.0 : value / d[i * count + i];
    }
  }
  if (threadIdx.x != 0) return;
  double log_det = 0.0;
  for (std::int64_t i = 0; i < count; ++i) log_det += 2.0 * std::log(d[i * count + i]);
  status->log_det += log_det;
}

}  // namespace

void reset_inverse_covariance(Stream stream, std::int64_t parameters, double lambda, double* inverse) {
  launch(kernel<reset_inverse_kernel, kThreads>, rows_grid(parameters), 0, stream, parameters, lambda,
         inverse);
}

void apply_inverse(Products& products, std::int64_t p, std::int64_t count, const double* x,
                   const DelayedInverse& a, double* workspace, double* y) {
  constexpr std::int64_t kRows = DelayedInverse::kRows;
  multiply_placed(products, count, p, p, {x, p}, {a.inverse, p}, y, p);
  if (a.rows == 0) return;
  multiply_placed(products, count, kRows, p, {x, p}, {a.tail, p, true}, workspace, kRows);
  multiply_placed(products, count, p, kRows, {workspace, kRows}, {a.tail, p}, y, p, {-1.0, 1.0});
}

std::int64_t inverse_gram_workspace(const TangentShape& shape, std::int64_t docs) {
  return docs * (shape.parameters() + DelayedInverse::kRows);
}

void inverse_covariance_gram(Products& products, const TangentShape& shape, const FactorRows& rows,
                             double scale, const DelayedInverse& a, double* workspace, double* w,
                             double* m) {
  const std::int64_t docs = rows.docs;
  if (docs == 0) return;
  const std::int64_t p = shape.parameters();
  double* g = workspace + docs * DelayedInverse::kRows;
  launch_each(kernel<expand_gradients_kernel, kThreads>, p, docs, products.stream(), rows,
              LayerTable(shape), g);
  apply_inverse(products, p, docs, g, a, workspace, w);
  multiply_placed(products, docs, docs, p, {w, p}, {g, p, true}, m, docs, {.alpha = scale});
}

void observe_in_inverse(Stream stream, std::int64_t parameters, std::int64_t docs, const double* w,
                        const double* m, double scale, const PreferencePair* pairs, std::int64_t count,
                        double* workspace, DelayedInverse& a, CovarianceStatus* status) {
  if (count == 0) return;
  double* inverse_corner = workspace + count * count;
  factor_pair_corner(stream, docs, m, pairs, count, workspace, inverse_corner, status);
  launch(kernel<whiten_pairs_kernel, kThreads>, {parts_of(parameters, kWhitenColumns)},
         static_cast<std::size_t>(count) * kWhitenColumns * sizeof(double), stream, parameters, w,
         std::sqrt(scale), pairs, count, inverse_corner, a.tail + a.rows * parameters, status);
  a.rows += count;
}

void close_inverse(Products& products, std::int64_t p, DelayedInverse& a) {
  multiply_placed(products, p, p, DelayedInverse::kRows, {a.tail, p, true}, {a.tail, p}, a.inverse, p,
                  {-1.0, 1.0});
  fill_bytes(products.stream(), a.tail, 0,
             static_cast<std::size_t>(DelayedInverse::kRows * p) * sizeof(double));
  a.rows = 0;
}

void mirror_lower(Stream stream, std::int64_t n, double* a) {
  launch(kernel<mirror_lower_kernel, kThreads>, rows_grid(n), 0, stream, n, a);
}

void factor_pair_corner(Stream stream, std::int64_t docs, const double* m, const PreferencePair* pairs,
                        std::int64_t count, double* corner, double* inverse, CovarianceStatus* status) {
  if (count == 0) return;
  launch(kernel<factor_corner_kernel, kThreads>, {1}, 0, stream, docs, m, pairs, count, corner, inverse,
         status);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
