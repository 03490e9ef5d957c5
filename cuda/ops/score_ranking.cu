#include "cuda/ops/score_ranking.h"

#include "core/math/exact.h"
#include "cuda/ops/block_sum.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kWarps = kThreads / 32;

/// Calls place(doc, rank) for every document of a query, by the block's threads, and writes the first
/// document without a rank to `first_bad`, where it is not null. A document's rank is the number of those
/// before it: V² comparisons, without a sort, and the same whatever runs first.
template <class Place>
__device__ void rank_docs(const float* scores, std::int32_t docs, std::int32_t* shared,
                          std::int32_t* first_bad, const Place& place) {
  std::int32_t bad = docs;
  for (auto doc = static_cast<std::int32_t>(threadIdx.x); doc < docs; doc += kThreads) {
    const float score = scores[doc];
    if (!(score == score)) {
      bad = min(bad, doc);
      continue;
    }
    std::int32_t rank = 0;
    for (std::int32_t other = 0; other < docs; ++other) {
      const float rival = scores[other];
      if (rival > score || (rival == score && other < doc)) ++rank;
    }
    place(doc, rank);
  }
  if (first_bad == nullptr) return;
  for (int bits = 16; bits > 0; bits /= 2) bad = min(bad, __shfl_xor_sync(kWholeWarp, bad, bits));
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = bad;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned warp = 1; warp < kWarps; ++warp) bad = min(bad, shared[warp]);
  *first_bad = bad == docs ? -1 : bad;
}

// A block owns a query.
__global__ void __launch_bounds__(kThreads)
    order_by_score_kernel(const std::int64_t* offsets, const float* scores, std::int32_t* order,
                          std::int32_t* first_bad) {
  const std::int64_t begin = offsets[blockIdx.x];
  const auto docs = static_cast<std::int32_t>(offsets[blockIdx.x + 1] - begin);
  rank_docs(scores + begin, docs, dynamic_shared<std::int32_t>(),
            first_bad == nullptr ? nullptr : first_bad + blockIdx.x,
            [&](std::int32_t doc, std::int32_t rank) { order[begin + rank] = doc; });
}

// A block owns a query: the grades of its first ranks meet in shared memory, and a thread a cutoff adds
// them up in order. Bits as on the CPU: nothing may be fused.
__global__ void __launch_bounds__(kThreads)
    dcg_by_score_kernel(const std::int64_t* offsets, const float* scores, const std::uint8_t* grades,
                        GainTables tables, double* dcg, std::int32_t* first_bad) {
  const std::int64_t begin = offsets[blockIdx.x];
  const auto docs = static_cast<std::int32_t>(offsets[blockIdx.x + 1] - begin);
  auto* shared = dynamic_shared<std::int32_t>();
  std::int32_t* top = shared + kWarps;
  for (std::int64_t rank = threadIdx.x; rank < tables.last_cutoff; rank += kThreads) top[rank] = 0;
  __syncthreads();
  rank_docs(scores + begin, docs, shared, first_bad == nullptr ? nullptr : first_bad + blockIdx.x,
            [&](std::int32_t doc, std::int32_t rank) {
              if (rank < tables.last_cutoff) top[rank] = grades[begin + doc];
            });
  __syncthreads();
  for (std::int64_t cutoff = threadIdx.x; cutoff < tables.cutoff_count; cutoff += kThreads) {
    const std::int32_t shown = min(docs, tables.cutoffs[cutoff]);
    double sum = 0.0;
    for (std::int32_t rank = 0; rank < shown; ++rank) {
      sum = exact_add(sum, exact_mul(tables.gains[top[rank]], tables.discounts[rank]));
    }
    dcg[blockIdx.x * tables.cutoff_count + cutoff] = sum;
  }
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
  launch(order_by_score_kernel, dim3{static_cast<unsigned>(queries)}, dim3{kThreads},
         kWarps * sizeof(std::int32_t), stream, offsets, scores, order, first_bad);
}

void dcg_by_score(Stream stream, std::int64_t queries, const std::int64_t* offsets, const float* scores,
                  const std::uint8_t* grades, const GainTables& tables, double* dcg,
                  std::int32_t* first_bad) {
  if (queries == 0) return;
  launch(dcg_by_score_kernel, dim3{static_cast<unsigned>(queries)}, dim3{kThreads},
         (kWarps + static_cast<std::size_t>(tables.last_cutoff)) * sizeof(std::int32_t), stream, offsets,
         scores, grades, tables, dcg, first_bad);
}

void mean_scores(Stream stream, std::int64_t members, std::int64_t docs, const float* scores, float* mean) {
  if (docs == 0) return;
  launch(mean_scores_kernel, dim3{static_cast<unsigned>((docs + kThreads - 1) / kThreads)}, dim3{kThreads},
         0, stream, members, docs, scores, mean);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
