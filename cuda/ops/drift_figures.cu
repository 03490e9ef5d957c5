#include "cuda/ops/drift_figures.h"

#include "cuda/ops/block_sum.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 256;
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
