#include "cuda/ops/inverse_covariance.h"

#include <algorithm>
#include <cmath>

#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/layer_table.h"
#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kFinishColumns = 32;

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

/// How a symmetric matrix in double changes by qᵀq, in tiles of its lower triangle.
struct RankUpdate {
  static constexpr unsigned kThreads = 256;
  static constexpr int kSide = 64;
  static constexpr int kRowsOfQ = 32;              // at a time in shared memory
  static constexpr int kMirrorStride = kSide + 1;  // a column of a tile falls into all banks
  static constexpr std::size_t kSharedBytes = std::size_t{kSide} * kMirrorStride * sizeof(double);
  static_assert(kMirrorStride > 2 * kRowsOfQ);

  static dim3 grid(std::int64_t n) {
    const auto tiles = static_cast<unsigned>((n + kSide - 1) / kSide);
    return {tiles, tiles};
  }
};

// Writes the mirror image of a tile [64 × 64] of the lower triangle, which the block's threads have put
// into shared memory.
__device__ void write_mirror(std::int64_t n, std::int64_t row, std::int64_t column, const double* tile,
                             double* a) {
  constexpr int kSide = RankUpdate::kSide;
  const int near = static_cast<int>(threadIdx.x) % kSide;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x) / kSide; i < kSide;
       i += static_cast<int>(RankUpdate::kThreads) / kSide) {
    if (row + near < n && column + i < row + near)
      a[(column + i) * n + row + near] = tile[near * RankUpdate::kMirrorStride + i];
  }
}

// a [n × n] ← a − qᵀq with q [count × n], count > 0; the lower triangle is read. Grid: tiles of columns,
// tiles of rows; those above the diagonal return. A block owns a tile [64 × 64] and its mirror image, a
// thread 16 numbers of a column; q's part lies in shared memory, then the tile. Double; deterministic.
__device__ void rank_update(const Grid& grid, std::int64_t n, const double* q, std::int64_t count,
                            double* a) {
  if (grid.block.x > grid.block.y) return;
  constexpr int kSide = RankUpdate::kSide;
  constexpr int kRowsAtATime = static_cast<int>(RankUpdate::kThreads) / kSide;
  constexpr int kHeld = kSide / kRowsAtATime;
  auto* of_rows = dynamic_shared<double>();
  double* of_columns = of_rows + RankUpdate::kRowsOfQ * kSide;
  const std::int64_t row = std::int64_t{grid.block.y} * kSide;
  const std::int64_t column = std::int64_t{grid.block.x} * kSide;
  const int near = static_cast<int>(threadIdx.x) % kSide;
  const int far = static_cast<int>(threadIdx.x) / kSide;
  // The matrix is read first and arrives while q is. No load depends on a branch: what lies outside reads
  // q.
  const auto inside = [&](std::int64_t i) { return i < n && column + near <= i; };
  double* numbers = a + (row + far) * n + column + near;
  double before[kHeld];
#pragma unroll
  for (int e = 0; e < kHeld; ++e)
    before[e] = *(inside(row + far + kRowsAtATime * e) ? numbers + kRowsAtATime * e * n : q);
  double sums[kHeld] = {};
  for (std::int64_t first = 0; first < count; first += RankUpdate::kRowsOfQ) {
    const int rows = static_cast<int>(min(std::int64_t{RankUpdate::kRowsOfQ}, count - first));
    __syncthreads();
    for (int s = far; s < rows; s += kRowsAtATime) {
      const double* of_q = q + (first + s) * n;
      of_rows[s * kSide + near] = row + near < n ? of_q[row + near] : 0.0;
      of_columns[s * kSide + near] = column + near < n ? of_q[column + near] : 0.0;
    }
    __syncthreads();
    for (int s = 0; s < rows; ++s) {
      const double factor = of_columns[s * kSide + near];
#pragma unroll
      for (int e = 0; e < kHeld; ++e) sums[e] += of_rows[s * kSide + far + kRowsAtATime * e] * factor;
    }
  }
  auto* tile = dynamic_shared<double>();
  __syncthreads();  // q's part has been read
#pragma unroll
  for (int e = 0; e < kHeld; ++e) {
    const int i = far + kRowsAtATime * e;
    const double number = before[e] - sums[e];
    if (inside(row + i)) numbers[kRowsAtATime * e * n] = number;
    tile[i * RankUpdate::kMirrorStride + near] = number;
  }
  write_mirror(n, row, column, tile, a);
}

// Grid: tiles of columns, tiles of rows; those above the diagonal return. A block owns a tile [64 × 64].
__device__ void mirror_lower_kernel(const Grid& grid, std::int64_t n, double* a) {
  if (grid.block.x > grid.block.y) return;
  constexpr int kSide = RankUpdate::kSide;
  auto* tile = dynamic_shared<double>();
  const std::int64_t row = std::int64_t{grid.block.y} * kSide;
  const std::int64_t column = std::int64_t{grid.block.x} * kSide;
  const int near = static_cast<int>(threadIdx.x) % kSide;
  for (int i = static_cast<int>(threadIdx.x) / kSide; i < kSide;
       i += static_cast<int>(RankUpdate::kThreads) / kSide) {
    const bool inside = row + i < n && column + near <= row + i;
    tile[i * RankUpdate::kMirrorStride + near] = inside ? a[(row + i) * n + column + near] : 0.0;
  }
  write_mirror(n, row, column, tile, a);
}

// A⁻¹ ← A⁻¹ − qᵀq.
__device__ void subtract_gram_kernel(const Grid& grid, std::int64_t parameters, const double* q,
                                     std::int64_t count, double* inverse, const CovarianceStatus* status) {
  if (status->failed == 0) rank_update(grid, parameters, q, count, inverse);
}

}  // namespace

void reset_inverse_covariance(Stream stream, std::int64_t parameters, double lambda, double* inverse) {
  launch(kernel<reset_inverse_kernel, kThreads>,
         dim3{count_of(parameters), count_of(parts_of(parameters, kThreads))}, dim3{kThreads}, 0, stream,
         parameters, lambda, inverse);
}

std::int64_t inverse_gram_workspace(const TangentShape& shape, std::int64_t docs) {
  return docs * shape.parameters();
}

void inverse_covariance_gram(Products& products, const TangentShape& shape, const FactorRows& rows,
                             double scale, const double* inverse, double* workspace, double* w, double* m) {
  const std::int64_t docs = rows.docs;
  if (docs == 0) return;
  const std::int64_t p = shape.parameters();
  launch_each<kThreads>(kernel<expand_gradients_kernel, kThreads>, p, docs, products.stream(), rows,
                        LayerTable(shape), workspace);
  const MatrixPlaces of_docs{0, p, 0};
  products.multiply({.rows = docs, .columns = p, .inner = p, .a = of_docs, .b = of_docs, .c = of_docs},
                    workspace, inverse, w);
  const ProductShape gram{.rows = docs,
                          .columns = docs,
                          .inner = p,
                          .transposes_b = true,
                          .a = of_docs,
                          .b = of_docs,
                          .c = {0, docs, 0}};
  products.multiply(gram, w, workspace, m, {.alpha = scale});
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

void mirror_lower(Stream stream, std::int64_t n, double* a) {
  if (n == 0) return;
  launch(kernel<mirror_lower_kernel, RankUpdate::kThreads>, RankUpdate::grid(n), dim3{RankUpdate::kThreads},
         RankUpdate::kSharedBytes, stream, n, a);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
