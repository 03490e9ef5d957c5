#include "cuda/ops/largest_curvature.h"

#include <algorithm>
#include <cmath>

#include "core/math/optimizer_step.h"
#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/gradient_products.h"
#include "cuda/runtime/launch_each.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kDocsPerBlock = kThreads / 32;
constexpr std::int64_t kPerNormBlock = 2048;

// v ← v/‖v‖. A thread owns a number.
__global__ void __launch_bounds__(kThreads)
    normalise_kernel(std::int64_t parameters, double* vector, const CurvatureState* state) {
  if (state->settled != 0) return;
  const std::int64_t k = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (k < parameters) vector[k] /= state->norm;
}

// weights [docs] of Σ w g gᵀ v, and partial sums of the Rayleigh quotient. A warp owns a document, whose
// terms are split over the lanes in order; a term is counted in the quotient of its first document.
// Deterministic.
__global__ void __launch_bounds__(kThreads)
    curvature_weights_kernel(std::int64_t docs, const PairTerm* terms, PairIncidence incidence,
                             const double* products, double* weights, double* quotients,
                             const CurvatureState* state) {
  if (state->settled != 0) return;
  const std::int64_t doc = std::int64_t{blockIdx.x} * kDocsPerBlock + threadIdx.x / 32;
  double weight = 0.0;
  double quotient = 0.0;
  if (doc < docs) {
    const std::int32_t stop = incidence.offsets[doc + 1];
    for (std::int32_t i = incidence.offsets[doc] + static_cast<std::int32_t>(threadIdx.x % 32); i < stop;
         i += 32) {
      const std::int32_t end = incidence.ends[i];
      const PairTerm& term = terms[end / 2];
      const double product = products[term.first] - products[term.second];
      const double weighted = term.weight * product;
      weight += end % 2 == 0 ? weighted : -weighted;
      if (end % 2 == 0) quotient += weighted * product;
    }
    weight = warp_sum(weight);
    if (threadIdx.x % 32 == 0) weights[doc] = weight;
  }
  const double sum = block_sum(quotient, dynamic_shared<double>());
  if (threadIdx.x == 0) quotients[blockIdx.x] = sum;
}

/// The sum of the numbers, by the block's threads, returned to thread 0.
__device__ double sum_of(std::int64_t count, const double* numbers) {
  double sum = 0.0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) sum += numbers[i];
  return block_sum(sum, dynamic_shared<double>());
}

// Updates the estimate and decides whether it has settled. One block.
__global__ void __launch_bounds__(kThreads)
    settle_kernel(std::int64_t parts, const double* quotients, double tolerance, CurvatureState* state) {
  if (state->settled != 0) return;
  const double quotient = sum_of(parts, quotients);
  if (threadIdx.x != 0) return;
  const bool settled = has_settled(state->iterations, quotient, state->estimate, tolerance);
  state->estimate = quotient > state->estimate ? quotient : state->estimate;
  ++state->iterations;
  if (settled) state->settled = 1;
}

__global__ void __launch_bounds__(kThreads) norm_parts_kernel(std::int64_t parameters, const double* vector,
                                                              double* parts, const CurvatureState* state) {
  if (state->settled != 0) return;
  const std::int64_t begin = std::int64_t{blockIdx.x} * kPerNormBlock;
  double sum = 0.0;
  for (std::int64_t k = begin + threadIdx.x; k < min(parameters, begin + kPerNormBlock); k += kThreads) {
    sum += vector[k] * vector[k];
  }
  sum = block_sum(sum, dynamic_shared<double>());
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// One block. A zero vector ends the iteration.
__global__ void __launch_bounds__(kThreads)
    norm_kernel(std::int64_t parts, const double* numbers, CurvatureState* state) {
  if (state->settled != 0) return;
  const double sum = sum_of(parts, numbers);
  if (threadIdx.x != 0) return;
  state->norm = std::sqrt(sum);
  if (!(state->norm > 0.0)) state->settled = 1;
}

/// Replaces a zero vector, which would stay zero; gradients that were all equal leave one. Thread k owns a
/// number.
__global__ void __launch_bounds__(kThreads)
    restart_vector_kernel(std::int64_t parameters, const double* fresh, double* vector,
                          const CurvatureState* state) {
  if (state->norm > 0.0) return;
  const std::int64_t k = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (k < parameters) vector[k] = fresh[k];
}

__global__ void restart_state_kernel(CurvatureState* state) {
  if (threadIdx.x != 0 || state->norm > 0.0) return;
  state->norm = 1.0;
  state->settled = 0;
}

__global__ void reset_state_kernel(CurvatureState* state) {
  if (threadIdx.x == 0) *state = CurvatureState{};
}

__global__ void step_kernel(const CurvatureState* state, double growth, double rate, double prior,
                            double* step) {
  if (threadIdx.x == 0) *step = stable_step(rate, growth * curvature_of(state->estimate), prior);
}

/// The workspace of an iteration.
struct Work {
  double* products;
  double* weights;
  double* quotients;
  double* norms;
  double* sums;

  Work(const CurvatureTask& task, double* workspace)
      : products(workspace),
        weights(products + task.rows.docs),
        quotients(weights + task.rows.docs),
        norms(quotients + parts_of(task.rows.docs, kDocsPerBlock)),
        sums(norms + parts_of(task.shape.parameters(), kPerNormBlock)) {}
};

void measure(Stream stream, const CurvatureTask& task, const double* vector, const Work& work,
             CurvatureState* state) {
  const std::int64_t p = task.shape.parameters();
  const std::int64_t parts = parts_of(p, kPerNormBlock);
  constexpr std::size_t kShared = kThreads / 32 * sizeof(double);
  launch(norm_parts_kernel, dim3{count_of(parts)}, dim3{kThreads}, kShared, stream, p, vector, work.norms,
         state);
  launch(norm_kernel, dim3{1}, dim3{kThreads}, kShared, stream, parts, work.norms, state);
}

}  // namespace

std::int64_t curvature_workspace(const TangentShape& shape, std::int64_t docs) {
  return 2 * docs + parts_of(docs, kDocsPerBlock) + parts_of(shape.parameters(), kPerNormBlock) +
         std::max(gradient_products_workspace(shape, docs), gradient_sum_workspace(shape, docs));
}

void begin_curvature(Stream stream, const CurvatureTask& task, double* vector, double* workspace,
                     CurvatureState* state) {
  launch(reset_state_kernel, dim3{1}, dim3{32}, 0, stream, state);
  measure(stream, task, vector, Work(task, workspace), state);
  const std::int64_t p = task.shape.parameters();
  launch_each<kThreads>(restart_vector_kernel, p, 1, stream, p, task.fresh, vector, state);
  launch(restart_state_kernel, dim3{1}, dim3{32}, 0, stream, state);
}

void iterate_curvature(Stream stream, const CurvatureTask& task, double* vector, double* workspace,
                       CurvatureState* state) {
  if (task.rows.docs == 0 || task.count == 0) return;
  const Work work(task, workspace);
  const std::int64_t p = task.shape.parameters();
  const std::int64_t docs = task.rows.docs;
  const std::int64_t blocks = parts_of(docs, kDocsPerBlock);
  constexpr std::size_t kShared = kThreads / 32 * sizeof(double);
  const std::int32_t* settled = &state->settled;
  launch_each<kThreads>(normalise_kernel, p, 1, stream, p, vector, state);
  gradient_products(stream, task.shape, task.rows, vector, work.sums, work.products, settled);
  launch(curvature_weights_kernel, dim3{count_of(blocks)}, dim3{kThreads}, kShared, stream, docs,
         task.terms, task.incidence, work.products, work.weights, work.quotients, state);
  launch(settle_kernel, dim3{1}, dim3{kThreads}, kShared, stream, blocks, work.quotients, task.tolerance,
         state);
  gradient_sum(stream, task.shape, task.rows, work.weights, work.sums, vector, settled);
  measure(stream, task, vector, work, state);
}

void step_from_curvature(Stream stream, const CurvatureState* state, double growth, double rate,
                         double prior, double* step) {
  launch(step_kernel, dim3{1}, dim3{32}, 0, stream, state, growth, rate, prior, step);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
