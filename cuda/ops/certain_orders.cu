#include "cuda/ops/certain_orders.h"

#include <cmath>

#include "core/ops/relu_network.h"
#include "cuda/runtime/launch.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kWarps = kThreads / 32;
constexpr std::uint32_t kWholeWarp = 0xFFFFFFFFU;

/// The largest of `count` numbers, in all threads of the block; `shared` holds kWarps floats.
template <class Number>
__device__ Number largest_in_block(const Number* numbers, std::int64_t count, std::int64_t stride,
                                   Number* shared) {
  Number largest = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    const Number value = numbers[i * stride];
    largest = value > largest ? value : largest;
  }
  for (int bits = 16; bits > 0; bits /= 2) {
    const Number other = __shfl_xor_sync(kWholeWarp, largest, bits);
    largest = other > largest ? other : largest;
  }
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = largest;
  __syncthreads();
  for (unsigned warp = 0; warp < kWarps; ++warp) largest = shared[warp] > largest ? shared[warp] : largest;
  __syncthreads();
  return largest;
}

// A block owns a query. A document's rank is the number of those before it: V² comparisons, without a sort,
// and the same order whatever runs first.
__global__ void __launch_bounds__(kThreads)
    order_by_score_kernel(const std::int64_t* offsets, const float* scores, std::int32_t* order,
                          std::int32_t* first_bad) {
  const std::int64_t begin = offsets[blockIdx.x];
  const auto docs = static_cast<std::int32_t>(offsets[blockIdx.x + 1] - begin);
  const float* own = scores + begin;
  std::int32_t bad = docs;
  for (auto doc = static_cast<std::int32_t>(threadIdx.x); doc < docs; doc += kThreads) {
    const float score = own[doc];
    if (!(score == score)) {
      bad = min(bad, doc);
      continue;
    }
    std::int32_t rank = 0;
    for (std::int32_t other = 0; other < docs; ++other) {
      const float rival = own[other];
      if (rival > score || (rival == score && other < doc)) ++rank;
    }
    order[begin + rank] = doc;
  }
  if (first_bad == nullptr) return;
  auto* shared = dynamic_shared<std::int32_t>();
  for (int bits = 16; bits > 0; bits /= 2) bad = min(bad, __shfl_xor_sync(kWholeWarp, bad, bits));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = bad;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned warp = 1; warp < kWarps; ++warp) bad = min(bad, shared[warp]);
  first_bad[blockIdx.x] = bad == docs ? -1 : bad;
}

struct Width {
  double squared = 0.0;
  bool negative = false;
  bool lost = false;
};

/// As pair_width_sq() of core/ops has it.
__device__ Width pair_width(const double* m, std::int64_t docs, std::int64_t i, std::int64_t j) {
  const std::int64_t high = i > j ? i : j;
  const std::int64_t low = i > j ? j : i;
  const double own = m[high * docs + high];
  const double other = m[low * docs + low];
  Width width;
  width.squared = own + other - 2.0 * m[high * docs + low];
  if (!std::isfinite(width.squared)) {
    width.lost = true;
    width.squared = 0.0;
  } else if (width.squared < 0.0) {
    width.negative = true;
    width.lost = width.squared < -kLostWidth * (own + other);
    width.squared = 0.0;
  }
  return width;
}

/// As certain_by_width() of core/explore has it.
__device__ bool is_certain(const CertaintyRule& rule, double least_difference, double difference,
                           double width_sq) {
  if (!(difference > least_difference)) return false;
  const double room = 0.25 * difference - rule.slack;
  const double width_term_sq = rule.alpha * rule.alpha * width_sq;
  if (!(room > 0.0) || !(room * room > width_term_sq)) return false;
  return 0.5 * std::tanh(0.5 * difference) - rule.slack > std::sqrt(width_term_sq);
}

// A warp owns 32 places b of one row a of the bits, a block four such; grid: blocks of places, rows. Sums of
// health are of whole numbers, so that their order does not matter.
__global__ void __launch_bounds__(kThreads)
    certain_by_width_kernel(WidthedDocs query, const CertaintyRule* rule, std::uint32_t* bits,
                            std::int64_t words, double* width_sq, WidthHealthSums* health) {
  const float largest =
      largest_in_block(query.magnitudes, query.docs, 1, dynamic_shared<float>());
  const double least_difference = kScoreRounding * double{largest};
  if (health != nullptr && blockIdx.x == 0 && blockIdx.y == 0) {
    const double bound =
        -kLostWidth * largest_in_block(query.m, query.docs, query.docs + 1, dynamic_shared<double>());
    unsigned long long lost = 0;
    for (std::int64_t i = threadIdx.x; i < query.docs; i += kThreads) {
      if (!(query.m[i * (query.docs + 1)] >= bound)) ++lost;
    }
    if (lost > 0) atomicAdd(&health->lost, lost);
  }
  const std::int64_t word = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (word >= words) return;
  const std::int64_t a = blockIdx.y;
  const std::int64_t b = word * 32 + threadIdx.x % 32;
  bool certain = false;
  Width width;
  if (b < query.docs && b >= a) {
    const std::int64_t i = query.by_score[a];
    const std::int64_t j = query.by_score[b];
    if (a != b) width = pair_width(query.m, query.docs, i, j);
    if (width_sq != nullptr) {
      width_sq[i * query.docs + j] = width.squared;
      width_sq[j * query.docs + i] = width.squared;
    }
    const double difference = double{query.scores[i]} - double{query.scores[j]};
    certain = a != b && is_certain(*rule, least_difference, difference, width.squared);
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

// As above; all members have to agree.
__global__ void __launch_bounds__(kThreads)
    certain_by_vote_kernel(std::int64_t members, std::int64_t docs, const float* scores,
                           const float* magnitudes, const std::int32_t* by_score, std::uint32_t* bits,
                           std::int64_t words) {
  const float largest = largest_in_block(magnitudes, members * docs, 1, dynamic_shared<float>());
  const double least_difference = kScoreRounding * double{largest};
  const std::int64_t word = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (word >= words) return;
  const std::int64_t a = blockIdx.y;
  const std::int64_t b = word * 32 + threadIdx.x % 32;
  bool all = b < docs && b > a;
  if (all) {
    const std::int64_t i = by_score[a];
    const std::int64_t j = by_score[b];
    for (std::int64_t member = 0; member < members && all; ++member) {
      const float* of_doc = scores + member * docs;
      all = double{of_doc[i]} - double{of_doc[j]} > least_difference;
    }
  }
  const std::uint32_t ballot = __ballot_sync(kWholeWarp, all);
  if (threadIdx.x % 32 == 0) bits[a * words + word] = ballot;
}

__global__ void mean_scores_kernel(std::int64_t members, std::int64_t docs, const float* scores,
                                   float* mean) {
  const std::int64_t doc = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (doc >= docs) return;
  double sum = 0.0;
  for (std::int64_t member = 0; member < members; ++member) sum += double{scores[member * docs + doc]};
  mean[doc] = static_cast<float>(sum / static_cast<double>(members));
}

dim3 word_grid(std::int64_t words, std::int64_t docs) {
  return dim3{static_cast<unsigned>((words + kWarps - 1) / kWarps), static_cast<unsigned>(docs)};
}

}  // namespace

void order_by_score(Stream stream, std::int64_t queries, const std::int64_t* offsets, const float* scores,
                    std::int32_t* order, std::int32_t* first_bad) {
  if (queries == 0) return;
  launch(order_by_score_kernel, dim3{static_cast<unsigned>(queries)}, dim3{kThreads},
         kWarps * sizeof(std::int32_t), stream, offsets, scores, order, first_bad);
}

// Bits are written as 32-bit words, the first half of each 64-bit word first: all GPUs and x86-64 are
// little-endian.
void certain_by_width(Stream stream, const WidthedDocs& query, const CertaintyRule* rule,
                      std::uint64_t* bits, double* width_sq, WidthHealthSums* health) {
  if (query.docs == 0) return;
  const std::int64_t words = 2 * order_words(query.docs);
  launch(certain_by_width_kernel, word_grid(words, query.docs), dim3{kThreads}, kWarps * sizeof(double),
         stream, query, rule, reinterpret_cast<std::uint32_t*>(bits), words, width_sq, health);
}

void certain_by_vote(Stream stream, std::int64_t members, std::int64_t docs, const float* scores,
                     const float* magnitudes, const std::int32_t* by_score, std::uint64_t* bits) {
  if (docs == 0) return;
  const std::int64_t words = 2 * order_words(docs);
  launch(certain_by_vote_kernel, word_grid(words, docs), dim3{kThreads}, kWarps * sizeof(float), stream,
         members, docs, scores, magnitudes, by_score, reinterpret_cast<std::uint32_t*>(bits), words);
}

void mean_scores(Stream stream, std::int64_t members, std::int64_t docs, const float* scores, float* mean) {
  if (docs == 0) return;
  launch(mean_scores_kernel, dim3{static_cast<unsigned>((docs + kThreads - 1) / kThreads)}, dim3{kThreads},
         0, stream, members, docs, scores, mean);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
