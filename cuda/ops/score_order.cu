#include "cuda/ops/score_order.h"

#include "core/math/dcg.h"
#include "cuda/ops/block_sum.cuh"
#include "cuda/runtime/launch_each.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kWarps = kThreads / 32;

// A block owns a query, and a thread every kThreads-th document. A document's rank is the number of those
// before it: V² comparisons, without a sort, and the same whichever thread runs first.
__global__ void __launch_bounds__(kThreads)
    order_by_score_kernel(const std::int64_t* offsets, const float* all_scores, std::int32_t* order,
                          std::int32_t* first_bad) {
  const std::int64_t begin = offsets[blockIdx.x];
  const auto docs = static_cast<std::int32_t>(offsets[blockIdx.x + 1] - begin);
  const float* scores = all_scores + begin;
  std::int32_t bad = docs;
  for (auto doc = static_cast<std::int32_t>(threadIdx.x); doc < docs; doc += kThreads) {
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
  auto* shared = dynamic_shared<std::int32_t>();
  for (int bits = 16; bits > 0; bits /= 2) bad = min(bad, __shfl_xor_sync(kWholeWarp, bad, bits));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = bad;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned warp = 1; warp < kWarps; ++warp) bad = min(bad, shared[warp]);
  first_bad[blockIdx.x] = bad == docs ? -1 : bad;
}

__global__ void mean_scores_kernel(std::int64_t members, std::int64_t docs, const float* scores,
                                   float* mean) {
  const std::int64_t doc = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (doc >= docs) return;
  double sum = 0.0;
  for (std::int64_t member = 0; member < members; ++member) sum += double{scores[member * docs + doc]};
  mean[doc] = static_cast<float>(sum / static_cast<double>(members));
}

}  // namespace

void order_by_score(Stream stream, std::int64_t queries, const std::int64_t* offsets, const float* scores,
                    std::int32_t* order, std::int32_t* first_bad) {
  if (queries == 0) return;
  launch(order_by_score_kernel, dim3{count_of(queries)}, dim3{kThreads}, kWarps * sizeof(std::int32_t),
         stream, offsets, scores, order, first_bad);
}

void mean_scores(Stream stream, std::int64_t members, std::int64_t docs, const float* scores, float* mean) {
  launch_each<kThreads>(mean_scores_kernel, docs, 1, stream, members, docs, scores, mean);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
