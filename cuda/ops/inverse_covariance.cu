#include "cuda/ops/inverse_covariance.h"

#include <algorithm>
#include <cmath>

#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/layer_table.h"
#include "cuda/ops/rank_update.cuh"
#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kPart = 256;  // parameters: 54 parts of p = 13,700, each a tile of 128 × 128
constexpr unsigned kFinishColumns = 32;
constexpr std::int64_t kColumnsPerPass = 8;  // whose sums a warp keeps while it reads a row of A⁻¹

// A thread owns a parameter.
__device__ void fill_parameter_table_kernel(const Grid& grid, const LayerTable& layers,
                                            const ParameterTable& table) {
  const std::int64_t k = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (k >= layers.parameters) return;
  std::int64_t l = layers.depth - 1;
  while (layers.layer[l].weight > k) --l;
  const NetworkLayer& layer = layers.layer[l];
  const bool is_bias = layer.has_bias() && k >= layer.bias;
  const std::int64_t at = k - layer.weight;
  table.delta[k] = static_cast<std::int32_t>(layer.delta + (is_bias ? k - layer.bias : at / layer.columns));
  table.input[k] = is_bias ? -1 : static_cast<std::int32_t>(layer.input + at % layer.columns);
}

__device__ void reset_inverse_kernel(const Grid& grid, std::int64_t parameters, double lambda,
                                     double* inverse) {
  const std::int64_t column = std::int64_t{grid.block.y} * kThreads + threadIdx.x;
  const std::int64_t row = grid.block.x;  // a grid's y would be too small
  if (column < parameters) inverse[row * parameters + column] = column == row ? 1.0 / lambda : 0.0;
}

// g [docs × p]. Grid: parts of the parameters, documents; a thread owns a number.
__device__ void expand_gradients_kernel(const Grid& grid, const FactorRows& rows,
                                        const ParameterTable& table, std::int64_t parameters, double* g) {
  const std::int64_t k = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  const std::int64_t doc = grid.block.y;
  if (k < parameters) g[doc * parameters + k] = gradient_number(table, rows.values + doc * rows.stride, k);
}

// q [count × p] = √scale D⁻¹ Δw. A block owns 32 columns: its threads gather the pairs' differences into
// shared memory, then take the rows.
__device__ void whiten_pairs_kernel(const Grid& grid, std::int64_t parameters, const double* w,
                                    double root_scale, const PreferencePair* pairs, std::int64_t count,
                                    const double* inverse_corner, double* q,
                                    const CovarianceStatus* status) {
  if (status->failed != 0) return;
  auto* differences = dynamic_shared<double>();
  const std::int64_t near = threadIdx.x % kFinishColumns;
  const std::int64_t column = std::int64_t{grid.block.x} * kFinishColumns + near;
  const std::int64_t lane = threadIdx.x / kFinishColumns;
  constexpr std::int64_t kLanes = kThreads / kFinishColumns;
  for (std::int64_t s = lane; s < count && column < parameters; s += kLanes) {
    differences[s * kFinishColumns + near] =
        root_scale * (w[pairs[s].winner * parameters + column] - w[pairs[s].loser * parameters + column]);
  }
  __syncthreads();
  if (column >= parameters) return;
  for (std::int64_t i = lane; i < count; i += kLanes) {
    double value = 0.0;
    for (std::int64_t j = 0; j <= i; ++j) {
      value += inverse_corner[i * count + j] * differences[j * kFinishColumns + near];
    }
    q[i * parameters + column] = value;
  }
}

// A⁻¹ ← A⁻¹ − qᵀq.
__device__ void subtract_gram_kernel(const Grid& grid, std::int64_t parameters, const double* q,
                                     std::int64_t count, double* inverse, const CovarianceStatus* status) {
  if (status->failed == 0) rank_update<RankUpdate::kSubtractFromBoth>(grid, parameters, q, count, inverse);
}

// y = x A⁻¹. Grid: rows of A⁻¹, groups of columns. A warp owns a row and a group's sums.
__device__ void apply_inverse_kernel(const Grid& grid, std::int64_t parameters, const double* inverse,
                                     std::int64_t columns, const double* x, double* y) {
  const std::int64_t k = std::int64_t{grid.block.x} * (kThreads / 32) + threadIdx.x / 32;
  if (k >= parameters) return;
  const std::int64_t first = std::int64_t{grid.block.y} * kColumnsPerPass * parameters;
  const int taken = static_cast<int>(min(columns - grid.block.y * kColumnsPerPass, kColumnsPerPass));
  double sums[kColumnsPerPass] = {};
  for (std::int64_t j = threadIdx.x % 32; j < parameters; j += 32) {
    const double value = inverse[k * parameters + j];
#pragma unroll
    for (int c = 0; c < kColumnsPerPass; ++c) {
      if (c < taken) sums[c] += value * x[first + c * parameters + j];
    }
  }
#pragma unroll
  for (int c = 0; c < kColumnsPerPass; ++c) {
    const double sum = warp_sum(sums[c]);
    if (c < taken && threadIdx.x % 32 == 0) y[first + c * parameters + k] = sum;
  }
}

/// How the sum over the parameters in M = w Gᵀ is split. Depends on sizes only.
struct GramParts {
  std::int64_t whole;   // parts of kPart parameters
  std::int64_t rest;    // parameters of one more part
  std::int64_t square;  // numbers of a part

  /// Counts the numbers of all parts, rounded up so that what lies behind them is aligned.
  std::int64_t numbers() const { return parts_of((whole + 1) * square, 2) * 2; }
};

GramParts gram_parts(std::int64_t parameters, std::int64_t docs) {
  return {parameters / kPart, parameters % kPart, docs * docs};
}

}  // namespace

void fill_parameter_table(Stream stream, const TangentShape& shape, const ParameterTable& table) {
  launch_each<kThreads>(kernel<fill_parameter_table_kernel, kThreads>, shape.parameters(), 1, stream,
                        LayerTable(shape), table);
}

void reset_inverse_covariance(Stream stream, std::int64_t parameters, double lambda, double* inverse) {
  launch(kernel<reset_inverse_kernel, kThreads>,
         dim3{count_of(parameters), count_of(parts_of(parameters, kThreads))}, dim3{kThreads}, 0, stream,
         parameters, lambda, inverse);
}

std::int64_t inverse_gram_workspace(const TangentShape& shape, std::int64_t docs) {
  return gram_parts(shape.parameters(), docs).numbers() + docs * shape.parameters();
}

void inverse_covariance_gram(Products& products, const TangentShape& shape, const ParameterTable& table,
                             const FactorRows& rows, double scale, const double* inverse, double* workspace,
                             double* w, double* m) {
  const std::int64_t docs = rows.docs;
  if (docs == 0) return;
  const std::int64_t p = shape.parameters();
  const GramParts parts = gram_parts(p, docs);
  double* g = workspace + parts.numbers();
  launch_each<kThreads>(kernel<expand_gradients_kernel, kThreads>, p, docs, products.stream(), rows, table,
                        p, g);
  const MatrixPlaces of_docs{0, p, 0};
  products.multiply({.rows = docs, .columns = p, .inner = p, .a = of_docs, .b = of_docs, .c = of_docs}, g,
                    inverse, w);
  // A product does not split its sum, and a single one of M's size would occupy few multiprocessors.
  const std::int64_t square = docs * docs;
  ProductShape part{.rows = docs,
                    .columns = docs,
                    .inner = kPart,
                    .transposes_b = true,
                    .a = {0, p, kPart},
                    .b = {0, p, kPart},
                    .c = {0, docs, square},
                    .batch = parts.whole};
  if (parts.whole > 0) products.multiply(part, w, g, workspace, {.alpha = scale});
  if (parts.rest > 0) {
    part.inner = parts.rest;
    part.batch = 1;
    part.a = {parts.whole * kPart, p, 0};
    part.b = part.a;
    part.c = {parts.whole * square, docs, 0};
    products.multiply(part, w, g, workspace, {.alpha = scale});
  }
  sum_lower_parts(products.stream(), docs, parts.whole + (parts.rest > 0 ? 1 : 0), workspace, m);
}

std::int64_t inverse_update_workspace(std::int64_t parameters, std::int64_t pairs) {
  return pairs * (parameters + 2 * pairs);
}

void update_inverse_covariance(Stream stream, std::int64_t parameters, std::int64_t docs, const double* w,
                               const double* m, double scale, const PreferencePair* pairs,
                               std::int64_t count, double* workspace, double* inverse,
                               CovarianceStatus* status) {
  if (count == 0) return;
  double* corner = workspace;
  double* inverse_corner = corner + count * count;
  double* q = inverse_corner + count * count;
  factor_pair_corner(stream, docs, m, pairs, count, corner, inverse_corner, status);
  launch(kernel<whiten_pairs_kernel, kThreads>, dim3{count_of(parts_of(parameters, kFinishColumns))},
         dim3{kThreads}, static_cast<std::size_t>(count) * kFinishColumns * sizeof(double), stream,
         parameters, w, std::sqrt(scale), pairs, count, inverse_corner, q, status);
  launch(kernel<subtract_gram_kernel, RankUpdate::kThreads>, RankUpdate::grid(parameters),
         dim3{RankUpdate::kThreads}, RankUpdate::kSharedBytes, stream, parameters, q, count, inverse,
         status);
}

void apply_inverse_covariance(Stream stream, std::int64_t parameters, const double* inverse,
                              std::int64_t columns, const double* x, double* y) {
  if (columns == 0) return;
  launch(kernel<apply_inverse_kernel, kThreads>,
         dim3{count_of(parts_of(parameters, kThreads / 32)), count_of(parts_of(columns, kColumnsPerPass))},
         dim3{kThreads}, 0, stream, parameters, inverse, columns, x, y);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
