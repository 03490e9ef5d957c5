#include "cuda/ops/inverse_covariance.h"

#include <algorithm>
#include <cmath>

#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/double_tile.cuh"
#include "cuda/ops/layer_table.h"
#include "cuda/ops/partial_sums.cuh"
#include "cuda/ops/rank_update.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kWantedBlocks = 264;  // two per multiprocessor of a large device
constexpr unsigned kFinishColumns = 32;
constexpr int kSide = DoubleTile::kSide;

std::int64_t parts_of(std::int64_t n, std::int64_t part) {
  return (n + part - 1) / part;
}
unsigned count_of(std::int64_t n) {
  return static_cast<unsigned>(n);
}

// A thread owns a parameter.
__global__ void __launch_bounds__(kThreads)
    fill_parameter_table_kernel(const __grid_constant__ LayerTable layers, ParameterTable table) {
  const std::int64_t k = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (k >= layers.parameters) return;
  std::int64_t l = layers.depth - 1;
  while (layers.layer[l].weight > k) --l;
  const NetworkLayer& layer = layers.layer[l];
  const bool is_bias = layer.has_bias() && k >= layer.bias;
  const std::int64_t at = k - layer.weight;
  table.delta[k] = static_cast<std::int32_t>(layer.delta + (is_bias ? k - layer.bias : at / layer.columns));
  table.input[k] = is_bias ? -1 : static_cast<std::int32_t>(layer.input + at % layer.columns);
}

__global__ void __launch_bounds__(kThreads)
    reset_inverse_kernel(std::int64_t parameters, double lambda, double* inverse) {
  const std::int64_t column = std::int64_t{blockIdx.y} * kThreads + threadIdx.x;
  const std::int64_t row = blockIdx.x;  // a grid's y would be too small
  if (column <= row) inverse[row * parameters + column] = column == row ? 1.0 / lambda : 0.0;
}

/// Gradients of the documents from `first` on, computed where they are read.
struct GradientOperand {
  const FactorRows& rows;
  const ParameterTable& table;
  std::int64_t first;
  std::int64_t end;  // of the parameters

  __device__ void prepare(std::int64_t) {}
  __device__ bool along_depth() const { return true; }
  __device__ int rows_within() const { return rows_of_tile(rows.docs, first); }

  __device__ GradientColumn at(std::int64_t k) const {
    const bool inside = k < end;
    const std::int64_t known = inside ? k : 0;
    const float* from = rows.values + first * rows.stride;
    const std::int32_t input = table.input[known];
    return {from + table.delta[known], from + max(input, 0), static_cast<int>(rows.stride), input < 0,
            inside};
  }
};

/// Columns of a symmetric matrix from `first` on, from its lower triangle.
struct SymmetricOperand {
  const double* values;
  std::int64_t size;
  std::int64_t first;

  bool above = false;

  __device__ void prepare(std::int64_t k) { above = k < first; }
  __device__ bool along_depth() const { return above; }
  __device__ int rows_within() const { return rows_of_tile(size, first); }

  struct Column {
    const double* row;     // of k, from the first column on
    const double* column;  // k of the first column's row
    int size;
    int diagonal;  // the last column that row k holds
    bool inside;

    __device__ double operator()(int i) const {
      return i <= diagonal ? row[i] : column[place_of_row(i, size)];
    }
  };
  __device__ Column at(std::int64_t k) const {
    const auto diagonal = max(min(k - first, std::int64_t{DoubleTile::kSide}), std::int64_t{-1});
    return {values + k * size + first, values + first * size + k, static_cast<int>(size),
            static_cast<int>(diagonal), k < size};
  }
};

// w = G A⁻¹. Grid: tiles of parameters, tiles of documents. A block owns a tile [64 documents × 64
// parameters] and passes over all parameters in order. Double; deterministic.
__global__ void __launch_bounds__(DoubleTile::kThreads)
    gradient_inverse_kernel(const __grid_constant__ FactorRows rows,
                            const __grid_constant__ ParameterTable table, std::int64_t parameters,
                            const double* inverse, double* w) {
  const std::int64_t doc = std::int64_t{blockIdx.y} * kSide;
  const std::int64_t column = std::int64_t{blockIdx.x} * kSide;
  GradientOperand a{rows, table, doc, parameters};
  SymmetricOperand b{inverse, parameters, column};
  DoubleTile tile;
  multiply_tile(0, parameters, a, b, dynamic_shared<double>(), tile);
  tile.for_each([&](int i, int j, double sum) {
    if (doc + i < rows.docs && column + j < parameters) w[(doc + i) * parameters + column + j] = sum;
  });
}

// parts [parts × docs × docs]: scale · w Gᵀ over a part of the parameters, tiles of the lower triangle.
__global__ void __launch_bounds__(DoubleTile::kThreads)
    gram_of_products_kernel(const __grid_constant__ FactorRows rows,
                            const __grid_constant__ ParameterTable table, std::int64_t parameters,
                            double scale, const double* w, std::int64_t per_part, double* parts) {
  std::int64_t row = 0;
  std::int64_t column = 0;
  lower_tile(blockIdx.x, row, column);
  const std::int64_t begin = std::int64_t{blockIdx.y} * per_part;
  const std::int64_t end = min(parameters, begin + per_part);
  DoubleOperand<true> a{w, parameters, rows.docs, end, row};
  GradientOperand b{rows, table, column, end};
  DoubleTile tile;
  multiply_tile(begin, end, a, b, dynamic_shared<double>(), tile);
  double* out = parts + std::int64_t{blockIdx.y} * rows.docs * rows.docs;
  tile.for_each([&](int i, int j, double sum) {
    if (row + i < rows.docs && column + j <= row + i) {
      out[(row + i) * rows.docs + column + j] = scale * sum;
    }
  });
}

std::int64_t parameters_per_part(std::int64_t parameters, std::int64_t docs) {
  const std::int64_t wanted = std::max<std::int64_t>(1, kWantedBlocks / lower_tiles(docs));
  return parts_of(parts_of(parameters, wanted), DoubleTile::kDepth) * DoubleTile::kDepth;
}

// q [count × p] = √scale D⁻¹ Δw. A block owns 32 columns: its threads gather the pairs' differences into
// shared memory, then take the rows.
__global__ void __launch_bounds__(kThreads)
    whiten_pairs_kernel(std::int64_t parameters, const double* w, double root_scale,
                        const PreferencePair* pairs, std::int64_t count, const double* inverse_corner,
                        double* q, const CovarianceStatus* status) {
  if (status->failed != 0) return;
  auto* differences = dynamic_shared<double>();
  const std::int64_t near = threadIdx.x % kFinishColumns;
  const std::int64_t column = std::int64_t{blockIdx.x} * kFinishColumns + near;
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
__global__ void __launch_bounds__(RankUpdate::kThreads)
    subtract_gram_kernel(std::int64_t parameters, const double* q, std::int64_t count, double* inverse,
                         const CovarianceStatus* status) {
  if (status->failed == 0) rank_update<true>(parameters, q, count, inverse);
}

__global__ void __launch_bounds__(kThreads)
    roots_of_inverse_kernel(std::int64_t parameters, double scale, const double* inverse, double* root) {
  const std::int64_t k = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (k < parameters) root[k] = std::sqrt(scale * inverse[k * (parameters + 1)]);
}

// y = A⁻¹ x along the rows: a warp owns a row, up to its diagonal.
__global__ void __launch_bounds__(kThreads)
    apply_inverse_rows_kernel(std::int64_t parameters, const double* inverse, const double* x, double* y) {
  const std::int64_t k = std::int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  if (k >= parameters) return;
  double sum = 0.0;
  for (std::int64_t j = threadIdx.x % 32; j <= k; j += 32) sum += inverse[k * parameters + j] * x[j];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) y[k] = sum;
}

// Adds the part below the diagonal. A block owns 32 columns; its warps pass down every eighth row of them,
// and their sums are added in order.
__global__ void __launch_bounds__(kThreads)
    apply_inverse_columns_kernel(std::int64_t parameters, const double* inverse, const double* x,
                                 double* y) {
  constexpr int kWarps = static_cast<int>(kThreads / 32);
  auto* sums = dynamic_shared<double>();
  const std::int64_t k = std::int64_t{blockIdx.x} * 32 + threadIdx.x % 32;
  double sum = 0.0;
  for (std::int64_t j = k + 1 + threadIdx.x / 32; j < parameters; j += kWarps)
    sum += inverse[j * parameters + k] * x[j];
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= 32 || k >= parameters) return;
  sum = 0.0;
  for (int warp = 0; warp < kWarps; ++warp) sum += sums[warp * 32 + threadIdx.x];
  y[k] += sum;
}

}  // namespace

void fill_parameter_table(Stream stream, const NetworkShape& shape, const ParameterTable& table) {
  launch(fill_parameter_table_kernel, dim3{count_of(parts_of(shape.parameters(), kThreads))},
         dim3{kThreads}, 0, stream, LayerTable(shape), table);
}

void reset_inverse_covariance(Stream stream, std::int64_t parameters, double lambda, double* inverse) {
  launch(reset_inverse_kernel, dim3{count_of(parameters), count_of(parts_of(parameters, kThreads))},
         dim3{kThreads}, 0, stream, parameters, lambda, inverse);
}

std::int64_t inverse_gram_workspace(const NetworkShape& shape, std::int64_t docs) {
  if (docs == 0) return 0;
  const std::int64_t p = shape.parameters();
  return parts_of(p, parameters_per_part(p, docs)) * docs * docs;
}

void inverse_covariance_gram(Stream stream, const NetworkShape& shape, const ParameterTable& table,
                             const FactorRows& rows, double scale, const double* inverse, double* workspace,
                             double* w, double* m) {
  if (rows.docs == 0) return;
  const std::int64_t p = shape.parameters();
  launch(gradient_inverse_kernel, dim3{double_tiles(p), double_tiles(rows.docs)},
         dim3{DoubleTile::kThreads}, DoubleTile::kSharedBytes, stream, rows, table, p, inverse, w);
  const std::int64_t per_part = parameters_per_part(p, rows.docs);
  const std::int64_t parts = parts_of(p, per_part);
  launch(gram_of_products_kernel, dim3{count_of(lower_tiles(rows.docs)), count_of(parts)},
         dim3{DoubleTile::kThreads}, DoubleTile::kSharedBytes, stream, rows, table, p, scale, w, per_part,
         workspace);
  sum_lower_parts(stream, rows.docs, parts, workspace, m);
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
  launch(whiten_pairs_kernel, dim3{count_of(parts_of(parameters, kFinishColumns))}, dim3{kThreads},
         static_cast<std::size_t>(count) * kFinishColumns * sizeof(double), stream, parameters, w,
         std::sqrt(scale), pairs, count, inverse_corner, q, status);
  launch(subtract_gram_kernel, RankUpdate::grid(parameters), dim3{RankUpdate::kThreads},
         RankUpdate::kSharedBytes, stream, parameters, q, count, inverse, status);
}

void apply_inverse_covariance(Stream stream, std::int64_t parameters, const double* inverse,
                              const double* x, double* y) {
  launch(apply_inverse_rows_kernel, dim3{count_of(parts_of(parameters, kThreads / 32))}, dim3{kThreads}, 0,
         stream, parameters, inverse, x, y);
  launch(apply_inverse_columns_kernel, dim3{count_of(parts_of(parameters, 32))}, dim3{kThreads},
         kThreads * sizeof(double), stream, parameters, inverse, x, y);
}

void roots_of_inverse(Stream stream, std::int64_t parameters, double scale, const double* inverse,
                      double* root) {
  launch(roots_of_inverse_kernel, dim3{count_of(parts_of(parameters, kThreads))}, dim3{kThreads}, 0, stream,
         parameters, scale, inverse, root);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
