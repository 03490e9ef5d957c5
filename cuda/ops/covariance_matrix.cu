#include "cuda/ops/covariance_matrix.h"

#include <algorithm>
#include <cmath>

#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/inverse_factor.h"
#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr std::int64_t kPairsAtATime = 256;

/// `count` pairs from `first` on.
FactorRows pairs_from(const FactorRows& pairs, std::int64_t first, std::int64_t count) {
  return {pairs.values + 2 * first * pairs.stride, 2 * count, pairs.stride};
}

// Columns [first, first + count) of b, from the diagonal down: differences of kernel [n − first × 2 ·
// count], whose columns are winners and losers. Grid: rows, parts of the columns; a thread owns a number.
__device__ void kernel_columns_kernel(const Grid& grid, std::int64_t n, std::int64_t first,
                                      std::int64_t count, const double* kernel, double lambda, double* b) {
  const std::int64_t column = std::int64_t{grid.block.y} * kThreads + threadIdx.x;
  const std::int64_t row = grid.block.x;
  if (column >= count || column > row) return;
  const double* of_docs = kernel + 2 * (row * count + column);
  b[(first + row) * n + first + column] = of_docs[0] - of_docs[1] + (row == column ? lambda : 0.0);
}

// q [count × p] = root_scale · g_s. Grid: parts of the parameters, pairs; a thread owns a number.
__device__ void pair_gradients_kernel(const Grid& grid, const FactorRows& pairs, const LayerTable& layers,
                                      double root_scale, double* q) {
  const std::int64_t k = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (k >= layers.parameters) return;
  const std::int64_t pair = grid.block.y;
  const float* winner = pairs.values + 2 * pair * pairs.stride;
  q[pair * layers.parameters + k] =
      root_scale * (gradient_number(layers, winner, k) - gradient_number(layers, winner + pairs.stride, k));
}

// One block; a thread adds every 256th number of the diagonal, in order.
__device__ void status_of_factor_kernel(const Grid& /*grid*/, std::int64_t n, const double* l,
                                        double lambda, CovarianceStatus* status) {
  double sum = 0.0;
  for (std::int64_t k = threadIdx.x; k < n; k += kThreads)
    sum += 2.0 * std::log(l[k * (n + 1)]) - std::log(lambda);
  sum = block_sum(sum, dynamic_shared<double>());
  if (threadIdx.x != 0) return;
  const bool good = std::isfinite(sum);
  status->log_det = good ? sum : 0.0;
  status->failed = good ? 0 : 1;
}

// Grid: rows, parts of the columns; a thread owns a number of a row block.
__device__ void pack_factor_kernel(const Grid& grid, std::int64_t stride, const double* inverse,
                                   double* factor) {
  const std::int64_t column = std::int64_t{grid.block.y} * kThreads + threadIdx.x;
  const std::int64_t row = grid.block.x;
  if (column >= InverseFactor::kBlock * (row / InverseFactor::kBlock + 1)) return;
  factor[factor_row(row) + column] = column <= row ? inverse[row * stride + column] : 0.0;
}

// Grid: rows, parts of the columns; a thread owns a number. With `lower`, zeros go above the diagonal.
__device__ void copy_matrix_kernel(const Grid& grid, std::int64_t columns, const PlacedMatrix& from,
                                   int lower, double* to, std::int64_t stride) {
  const std::int64_t column = std::int64_t{grid.block.y} * kThreads + threadIdx.x;
  const std::int64_t row = grid.block.x;
  if (column >= columns) return;
  to[row * stride + column] = lower != 0 && column > row ? 0.0 : from.values[row * from.stride + column];
}

constexpr unsigned kDiagonalThreads = 128;
constexpr std::int64_t kTurned = 32;

__device__ void reset_diagonal_kernel(const Grid& grid, std::int64_t parameters, double lambda,
                                      double scale, const DiagonalState& state) {
  const std::int64_t k = std::int64_t{grid.block.x} * blockDim.x + threadIdx.x;
  if (k >= parameters) return;
  state.diagonal[k] = lambda;
  state.root[k] = std::sqrt(scale * (1.0 / lambda));
}

// A thread owns a parameter and adds the pairs in order, in double; grid.block.y is the layer.
// Deterministic.
__device__ void add_to_diagonal_kernel(const Grid& grid, const LayerTable& layers, const FactorRows& rows,
                                       const PreferencePair* pairs, std::int64_t count, double scale,
                                       const DiagonalState& state) {
  const NetworkLayer& layer = layers.layer[grid.block.y];
  const std::int64_t at = std::int64_t{grid.block.x} * blockDim.x + threadIdx.x;
  const std::int64_t weights = layer.rows * layer.columns;
  const bool is_bias = at >= weights;
  if (at >= weights + (layer.has_bias() ? layer.rows : 0)) return;
  const std::int64_t unit = is_bias ? at - weights : at / layer.columns;
  const std::int64_t column = is_bias ? 0 : at % layer.columns;
  const std::int64_t k = is_bias ? layer.bias + unit : layer.weight + at;
  const auto gradient = [&](std::int32_t doc) {
    const float* row = rows.values + doc * rows.stride;
    const double delta{row[layer.delta + unit]};
    return is_bias ? delta : delta * double{row[layer.input + column]};
  };
  double sum = state.diagonal[k];
  for (std::int64_t s = 0; s < count; ++s) {
    const double g = gradient(pairs[s].winner) - gradient(pairs[s].loser);
    sum += scale * (g * g);
  }
  state.diagonal[k] = sum;
  state.root[k] = std::sqrt(scale * (1.0 / sum));
}

// s [p × docs] = root · g. A block owns a tile [32 × 32], which turns in shared memory.
__device__ void scaled_gradients_kernel(const Grid& grid, const LayerTable& layers, const FactorRows& rows,
                                        const double* root, double* s) {
  auto* tile = dynamic_shared<double>();
  const std::int64_t near = threadIdx.x % kTurned;
  const std::int64_t parameter = std::int64_t{grid.block.x} * kTurned;
  const std::int64_t doc = std::int64_t{grid.block.y} * kTurned;
  for (std::int64_t i = threadIdx.x / kTurned; i < kTurned && parameter + near < layers.parameters;
       i += kDiagonalThreads / kTurned) {
    if (doc + i >= rows.docs) continue;
    tile[i * (kTurned + 1) + near] =
        root[parameter + near] *
        gradient_number(layers, rows.values + (doc + i) * rows.stride, parameter + near);
  }
  __syncthreads();
  for (std::int64_t i = threadIdx.x / kTurned; i < kTurned && doc + near < rows.docs;
       i += kDiagonalThreads / kTurned) {
    if (parameter + i < layers.parameters)
      s[(parameter + i) * rows.docs + doc + near] = tile[near * (kTurned + 1) + i];
  }
}

/// The scaled gradients as rows of a factor without a tail.
FactorTail rows_of_parameters(const TangentShape& shape) {
  FactorTail all;
  all.head = shape.parameters();
  return all;
}

constexpr unsigned kFigureThreads = 1024;

// Grid: blocks of pairs, columns; a thread owns a pair.
__device__ void pair_differences_kernel(const Grid& grid, std::int64_t pairs, const double* of_docs,
                                        double factor, const PairColumns& of_pairs) {
  const std::int64_t pair = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (pair >= pairs) return;
  const double* docs = of_docs + 2 * (grid.block.y * pairs + pair);
  of_pairs.values[pair * of_pairs.by_pair + grid.block.y * of_pairs.by_column] =
      factor * (docs[0] - docs[1]);
}

__device__ void pair_weights_kernel(const Grid& grid, std::int64_t pairs, const PairColumns& of_pairs,
                                    double* of_docs) {
  const std::int64_t pair = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (pair >= pairs) return;
  const double weight = of_pairs.values[pair * of_pairs.by_pair + grid.block.y * of_pairs.by_column];
  double* docs = of_docs + 2 * (grid.block.y * pairs + pair);
  docs[0] = weight;
  docs[1] = -weight;
}

__device__ void finish_solutions_kernel(const Grid& grid, std::int64_t count, const double* v,
                                        double factor, double lambda, double* y) {
  const std::int64_t k = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (k < count) y[k] = (v[k] - factor * y[k]) / lambda;
}

/// Σ a[i · stride] b[i · stride], returned to thread 0.
__device__ double inner_product(std::int64_t count, const double* a, const double* b, std::int64_t stride,
                                double* shared) {
  double sum = 0.0;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < count; i += kFigureThreads) sum += a[i * stride] * b[i * stride];
  sum = block_sum(sum, shared);
  __syncthreads();
  return sum;
}

// A block owns a column.
__device__ void drift_figures_kernel(const Grid& grid, const DriftColumns& task, DriftFigure* figures) {
  auto* shared = dynamic_shared<double>();
  const std::int64_t column = grid.block.x;
  const double* v = task.v + column * task.parameters;
  const double* y = task.y + column * task.parameters;
  const double y_y = inner_product(task.parameters, y, y, 1, shared);
  const double rest =
      inner_product(task.rows, task.left + column, task.right + column, grid.extent.x, shared);
  DriftFigure figure;
  figure.v_y = inner_product(task.parameters, v, y, 1, shared);
  figure.y_a_y = task.lambda * y_y + task.factor * rest;
  if (column < task.vectors) {
    figure.width_sq = inner_product(task.parameters, v, task.own + column * task.parameters, 1, shared);
  } else {
    const std::int64_t docs = 2 * task.pairs;
    const std::int64_t winner = 2 * (column - task.vectors);
    const double* of_winner = task.m + winner * docs + winner;
    const double* of_loser = of_winner + docs;
    figure.width_sq = (of_winner[0] + of_loser[1] - 2.0 * of_loser[0]) / task.scale;
  }
  if (threadIdx.x == 0) figures[column] = figure;
}

}  // namespace

std::int64_t pair_kernel_workspace(std::int64_t n) {
  return n * 2 * std::min(n, kPairsAtATime);
}

void pair_kernel(Stream stream, const TangentShape& shape, const FactorRows& pairs, double scale,
                 double lambda, double* workspace, double* b) {
  const std::int64_t n = pairs.docs / 2;
  for (std::int64_t first = 0; first < n; first += kPairsAtATime) {
    const std::int64_t count = std::min(kPairsAtATime, n - first);
    query_kernels(stream, shape, pairs_from(pairs, first, count), pairs_from(pairs, first, n - first),
                  scale, nullptr, workspace, 2 * count);
    launch(kernel<kernel_columns_kernel, kThreads>, {n - first, parts_of(count, kThreads)}, 0, stream, n,
           first, count, workspace, lambda, b);
  }
}

std::int64_t pair_covariance_workspace(std::int64_t parameters) {
  return kPairsAtATime * parameters;
}

void pair_covariance(Products& products, const TangentShape& shape, const FactorRows& pairs, double scale,
                     double lambda, double* workspace, double* a) {
  const Stream stream = products.stream();
  const std::int64_t p = shape.parameters();
  const std::int64_t n = pairs.docs / 2;
  reset_inverse_covariance(stream, p, 1.0 / lambda, a);
  for (std::int64_t first = 0; first < n; first += kPairsAtATime) {
    const std::int64_t count = std::min(kPairsAtATime, n - first);
    launch_each(kernel<pair_gradients_kernel, kThreads>, p, count, stream, pairs_from(pairs, first, count),
                LayerTable(shape), std::sqrt(scale), workspace);
    multiply_placed(products, p, p, count, {workspace, p, true}, {workspace, p}, a, p, {.beta = 1.0});
  }
}

void status_of_factor(Stream stream, std::int64_t n, const double* l, double lambda,
                      CovarianceStatus* status) {
  launch(kernel<status_of_factor_kernel, kThreads>, {1}, kThreads / 32 * sizeof(double), stream, n, l,
         lambda, status);
}

void pack_factor(Stream stream, std::int64_t n, const double* inverse, std::int64_t stride,
                 double* factor) {
  launch(kernel<pack_factor_kernel, kThreads>, {n, parts_of(n + InverseFactor::kBlock, kThreads)}, 0,
         stream, stride, inverse, factor);
}

void copy_matrix(Stream stream, std::int64_t rows, std::int64_t columns, const PlacedMatrix& from,
                 double* to, std::int64_t stride, bool lower) {
  launch(kernel<copy_matrix_kernel, kThreads>, {rows, parts_of(columns, kThreads)}, 0, stream, columns,
         from, lower, to, stride);
}

void reset_diagonal(Stream stream, const TangentShape& shape, double lambda, double scale,
                    const DiagonalState& state) {
  const std::int64_t p = shape.parameters();
  launch_each(kernel<reset_diagonal_kernel, kDiagonalThreads>, p, 1, stream, p, lambda, scale, state);
}

void add_to_diagonal(Stream stream, const TangentShape& shape, const FactorRows& rows,
                     const PreferencePair* pairs, std::int64_t count, double scale,
                     const DiagonalState& state) {
  if (count == 0) return;
  const LayerTable layers(shape);
  std::int64_t most = 0;
  for (const NetworkLayer& layer : shape.layers())
    most = std::max(most, layer.rows * layer.unit_parameters());
  const Blocks grid{parts_of(most, kDiagonalThreads), layers.depth};
  launch(kernel<add_to_diagonal_kernel, kDiagonalThreads>, grid, 0, stream, layers, rows, pairs, count,
         scale, state);
}

std::int64_t diagonal_gram_workspace(const TangentShape& shape, std::int64_t docs) {
  return shape.parameters() * docs + tail_workspace(rows_of_parameters(shape), docs, true);
}

void diagonal_gram(Stream stream, const TangentShape& shape, const FactorRows& rows, const double* root,
                   double* workspace, double* m) {
  if (rows.docs == 0) return;
  const std::int64_t p = shape.parameters();
  launch(kernel<scaled_gradients_kernel, kDiagonalThreads>,
         {parts_of(p, kTurned), parts_of(rows.docs, kTurned)}, kTurned * (kTurned + 1) * sizeof(double),
         stream, LayerTable(shape), rows, root, workspace);
  dual_gram(stream, rows_of_parameters(shape), rows.docs, nullptr, workspace, rows.docs, 0.0,
            workspace + p * rows.docs, m);
}

void pair_differences(Stream stream, std::int64_t pairs, std::int64_t columns, const double* of_docs,
                      double factor, const PairColumns& of_pairs) {
  launch_each(kernel<pair_differences_kernel, kThreads>, pairs, columns, stream, pairs, of_docs, factor,
              of_pairs);
}

void pair_weights(Stream stream, std::int64_t pairs, std::int64_t columns, const PairColumns& of_pairs,
                  double* of_docs) {
  launch_each(kernel<pair_weights_kernel, kThreads>, pairs, columns, stream, pairs, of_pairs, of_docs);
}

void finish_solutions(Stream stream, std::int64_t count, const double* v, double factor, double lambda,
                      double* y) {
  launch_each(kernel<finish_solutions_kernel, kThreads>, count, 1, stream, count, v, factor, lambda, y);
}

void drift_figures(Stream stream, const DriftColumns& columns, DriftFigure* figures) {
  launch(kernel<drift_figures_kernel, kFigureThreads>, {columns.vectors + columns.pairs},
         kFigureThreads / 32 * sizeof(double), stream, columns, figures);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
