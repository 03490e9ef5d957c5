#include "cuda/ops/certain_orders.h"

#include <algorithm>
#include <cmath>

#include "core/math/dcg.h"
#include "core/math/pair_loss.h"
#include "cuda/ops/block_sum.cuh"
#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kOrderThreads = 128;
constexpr unsigned kOrderWarps = kOrderThreads / 32;

/// The largest of `count` numbers and `largest` that this thread takes.
template <class Number>
__device__ Number largest_of_own(const Number* numbers, std::int64_t count, std::int64_t stride,
                                 Number largest = 0) {
  for (std::int64_t i = threadIdx.x; i < count; i += kOrderThreads) {
    const Number value = numbers[i * stride];
    largest = value > largest ? value : largest;
  }
  return largest;
}

/// The width of documents i and j from M's lower triangle.
__device__ PairWidth width_of(const double* m, std::int64_t docs, std::int64_t i, std::int64_t j) {
  const std::int64_t high = i > j ? i : j;
  const std::int64_t low = i > j ? j : i;
  return pair_width(m[high * docs + high], m[low * docs + low], m[high * docs + low]);
}

/// The first block of a grid does this.
__device__ void carry(const Grid& grid, const CarriedFigures& carried) {
  if (grid.block.x != 0 || grid.block.y != 0 || carried.status_copy == nullptr) return;
  if (threadIdx.x == 0) *carried.status_copy = *carried.status;
  for (std::int64_t i = threadIdx.x; i < carried.outcomes; i += kOrderThreads)
    carried.outcome_copy[i] = carried.outcome[i];
}

// A warp owns 32 places b of one row a of the bits, and a block has four warps. Grid: blocks of places,
// rows. Health sums are integers, so that the order of atomic additions does not matter.
__device__ void certain_by_width_kernel(const Grid& grid, const WidthedDocs& query,
                                        const CertaintyRule* rule, std::uint32_t* bits, std::int64_t words,
                                        double* width_sq, WidthHealthSums* health,
                                        const CarriedFigures& carried) {
  carry(grid, carried);
  const float largest =
      combined(largest_of_own(query.magnitudes, query.docs, 1), dynamic_shared<float>(), Larger{});
  if (health != nullptr && grid.block.x == 0 && grid.block.y == 0) {
    const double largest_variance =
        combined(largest_of_own(query.m, query.docs, query.docs + 1), dynamic_shared<double>(), Larger{});
    unsigned long long lost = 0;
    for (std::int64_t i = threadIdx.x; i < query.docs; i += kOrderThreads) {
      if (is_lost_variance(query.m[i * (query.docs + 1)], largest_variance)) ++lost;
    }
    if (lost > 0) atomicAdd(&health->lost, lost);
  }
  const std::int64_t word = std::int64_t{grid.block.x} * kOrderWarps + threadIdx.x / 32;
  if (word >= words) return;
  const std::int64_t a = grid.block.y;
  const std::int64_t b = word * 32 + threadIdx.x % 32;
  bool certain = false;
  PairWidth width;
  if (b < query.docs && b >= a) {
    const std::int64_t i = query.by_score[a];
    const std::int64_t j = query.by_score[b];
    if (a != b) width = width_of(query.m, query.docs, i, j);
    if (width_sq != nullptr) {
      width_sq[i * query.docs + j] = width.squared;
      width_sq[j * query.docs + i] = width.squared;
    }
    const double difference = double{query.scores[i]} - double{query.scores[j]};
    CertaintyRule own_rule = *rule;
    own_rule.least_difference = rounding_of_scores(largest);
    certain = a != b && is_certain(own_rule, difference, width.squared);
  }
  const std::uint32_t ballot = __ballot_sync(kWholeWarp, certain);
  const std::uint32_t negative = __ballot_sync(kWholeWarp, width.negative);
  const std::uint32_t lost = __ballot_sync(kWholeWarp, width.lost);
  if (threadIdx.x % 32 != 0) return;
  bits[a * words + word] = ballot;
  if (health == nullptr) return;
  if (negative != 0) atomicAdd(&health->negative, static_cast<unsigned long long>(__popc(negative)));
  if (lost != 0) atomicAdd(&health->lost, static_cast<unsigned long long>(__popc(lost)));
}

// The grid is that of the kernel above; an order is certain if all members vote for it.
__device__ void certain_by_vote_kernel(const Grid& grid, std::int64_t members, std::int64_t docs,
                                       std::int64_t stride, const float* scores, const float* magnitudes,
                                       const std::int32_t* by_score, std::uint32_t* bits,
                                       std::int64_t words, const CarriedFigures& carried) {
  carry(grid, carried);
  float own = 0.0F;
  for (std::int64_t member = 0; member < members; ++member)
    own = largest_of_own(magnitudes + member * stride, docs, 1, own);
  const float largest = combined(own, dynamic_shared<float>(), Larger{});
  const double least_difference = rounding_of_scores(largest);
  const std::int64_t word = std::int64_t{grid.block.x} * kOrderWarps + threadIdx.x / 32;
  if (word >= words) return;
  const std::int64_t a = grid.block.y;
  const std::int64_t b = word * 32 + threadIdx.x % 32;
  bool all = b < docs && b > a;
  if (all) {
    const std::int64_t i = by_score[a];
    const std::int64_t j = by_score[b];
    for (std::int64_t member = 0; member < members && all; ++member) {
      const float* of_doc = scores + member * stride;
      all = votes_for_first(of_doc[i], of_doc[j], least_difference);
    }
  }
  const std::uint32_t ballot = __ballot_sync(kWholeWarp, all);
  if (threadIdx.x % 32 == 0) bits[a * words + word] = ballot;
}

/// Without documents there is one block, which carries figures.
Blocks word_grid(std::int64_t words, std::int64_t docs) {
  return {std::max<std::int64_t>(1, parts_of(words, kOrderWarps)), std::max<std::int64_t>(1, docs)};
}

constexpr unsigned kAlphaThreads = 1024;

__device__ void set_theory_alpha_kernel(const Grid& /*grid*/, const TheoryAlpha& theory,
                                        const double* log_det, CertaintyRule* rule) {
  if (threadIdx.x == 0) rule->alpha = theory.at(*log_det);
}

// One block: each thread adds every 1,024th logarithm, then the threads' sums are added in order.
__device__ void diagonal_log_det_kernel(const Grid& /*grid*/, std::int64_t parameters,
                                        const double* diagonal, double lambda, double* log_det) {
  double sum = 0.0;
  for (std::int64_t k = threadIdx.x; k < parameters; k += kAlphaThreads)
    sum += std::log(diagonal[k] / lambda);
  sum = block_sum(sum, dynamic_shared<double>());
  if (threadIdx.x == 0) *log_det = sum;
}

// A block owns a query, and a thread every kOrderThreads-th document. A document's rank is the number of
// those before it: V² comparisons, without a sort, and the same whichever thread runs first.
__device__ void order_by_score_kernel(const Grid& grid, const std::int64_t* offsets,
                                      const float* all_scores, std::int32_t* order,
                                      std::int32_t* first_bad) {
  const std::int64_t begin = offsets[grid.block.x];
  const auto docs = static_cast<std::int32_t>(offsets[grid.block.x + 1] - begin);
  const float* scores = all_scores + begin;
  std::int32_t bad = docs;
  for (auto doc = static_cast<std::int32_t>(threadIdx.x); doc < docs; doc += kOrderThreads) {
    const float score = scores[doc];
    // A score that is no number comes last, so that every place has a document whatever the scores are.
    const bool is_bad = !(score == score);
    if (is_bad) bad = min(bad, doc);
    std::int32_t rank = 0;
    for (std::int32_t other = 0; other < docs; ++other) {
      const float there = scores[other];
      if (is_bad ? there == there || other < doc : comes_before(there, other, score, doc)) ++rank;
    }
    order[begin + rank] = doc;
  }
  if (first_bad == nullptr) return;
  bad = combined(bad, dynamic_shared<std::int32_t>(),
                 [](std::int32_t a, std::int32_t b) { return a < b ? a : b; });
  if (threadIdx.x == 0) first_bad[grid.block.x] = bad == docs ? -1 : bad;
}

__device__ void mean_scores_kernel(const Grid& grid, std::int64_t members, std::int64_t docs,
                                   const float* scores, float* mean) {
  const std::int64_t doc = std::int64_t{grid.block.x} * kOrderThreads + threadIdx.x;
  if (doc >= docs) return;
  double sum = 0.0;
  for (std::int64_t member = 0; member < members; ++member) sum += double{scores[member * docs + doc]};
  mean[doc] = static_cast<float>(sum / static_cast<double>(members));
}

}  // namespace

// Bits are written as 32-bit words, the first half of each 64-bit word first: all GPUs and x86-64 are
// little-endian.
void certain_by_width(Stream stream, const WidthedDocs& query, const CertaintyRule* rule,
                      std::uint64_t* bits, double* width_sq, WidthHealthSums* health,
                      const CarriedFigures& carried) {
  if (query.docs == 0 && carried.status_copy == nullptr) return;
  const std::int64_t words = 2 * OrderBits::words(query.docs);
  launch(kernel<certain_by_width_kernel, kOrderThreads>, word_grid(words, query.docs),
         kOrderWarps * sizeof(double), stream, query, rule, reinterpret_cast<std::uint32_t*>(bits), words,
         width_sq, health, carried);
}

void certain_by_vote(Stream stream, std::int64_t members, std::int64_t docs, std::int64_t stride,
                     const float* scores, const float* magnitudes, const std::int32_t* by_score,
                     std::uint64_t* bits, const CarriedFigures& carried) {
  if (docs == 0 && carried.status_copy == nullptr) return;
  const std::int64_t words = 2 * OrderBits::words(docs);
  launch(kernel<certain_by_vote_kernel, kOrderThreads>, word_grid(words, docs), kOrderWarps * sizeof(float),
         stream, members, docs, stride, scores, magnitudes, by_score,
         reinterpret_cast<std::uint32_t*>(bits), words, carried);
}

void set_theory_alpha(Stream stream, const TheoryAlpha& theory, const double* log_det,
                      CertaintyRule* rule) {
  launch(kernel<set_theory_alpha_kernel, 32>, {1}, 0, stream, theory, log_det, rule);
}

void diagonal_log_det(Stream stream, std::int64_t parameters, const double* diagonal, double lambda,
                      double* log_det) {
  launch(kernel<diagonal_log_det_kernel, kAlphaThreads>, {1}, kAlphaThreads / 32 * sizeof(double), stream,
         parameters, diagonal, lambda, log_det);
}

void order_by_score(Stream stream, std::int64_t queries, const std::int64_t* offsets, const float* scores,
                    std::int32_t* order, std::int32_t* first_bad) {
  launch(kernel<order_by_score_kernel, kOrderThreads>, {queries}, kOrderWarps * sizeof(std::int32_t),
         stream, offsets, scores, order, first_bad);
}

void mean_scores(Stream stream, std::int64_t members, std::int64_t docs, const float* scores, float* mean) {
  launch_each(kernel<mean_scores_kernel, kOrderThreads>, docs, 1, stream, members, docs, scores, mean);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
