#include "cuda/ops/ndcg_weights.h"

#include "core/math/dcg.h"
#include "cuda/ops/stable_groups.cuh"
#include "cuda/runtime/grid_size.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kWarps = kThreads / 32;

struct TermOfObservation {
  const PairObservation* observations;

  __device__ std::int32_t operator()(std::int64_t item) const { return observations[item].term; }
};

/// The rank by score of the document at `place` of a list of rows.
__device__ std::int32_t rank_in_list(const std::int32_t* rows, std::int32_t docs, std::int32_t place,
                                     const float* scores, const std::int64_t* doc_numbers) {
  const float own = scores[rows[place]];
  const std::int64_t number = doc_numbers[rows[place]];
  std::int32_t rank = 0;
  for (std::int32_t other = 0; other < docs; ++other) {
    if (comes_before(scores[rows[other]], doc_numbers[rows[other]], own, number)) ++rank;
  }
  return rank;
}

// changes [observations]. A warp owns an impression, its lanes the pairs; blockIdx.y is the member. Lists
// are short, so each pair ranks its own two documents.
__global__ void __launch_bounds__(kThreads)
    ndcg_changes_kernel(ImpressionView impressions, const PairObservation* observations,
                        std::int64_t observation_count, std::int64_t docs, const float* scores,
                        double* changes) {
  const std::int64_t impression = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (impression >= impressions.count) return;
  const float* own_scores = scores + std::int64_t{blockIdx.y} * docs;
  const std::int32_t first = impressions.first_doc[impression];
  const std::int32_t listed = impressions.first_doc[impression + 1] - first;
  const std::int32_t* rows = impressions.rows + first;
  double ideal = 0.0;
  std::int32_t clicked = 0;
  for (std::int32_t place = 0; place < listed; ++place) {
    if (impressions.clicks[first + place] != 0) ideal += kClickGain * impressions.discounts[clicked++];
  }
  const std::int32_t end = impressions.first_pair[impression + 1];
  for (std::int32_t pair = impressions.first_pair[impression] + static_cast<std::int32_t>(threadIdx.x % 32);
       pair < end; pair += 32) {
    const PairObservation& seen = observations[pair];
    const auto discount = [&](std::int32_t place) {
      return impressions.discounts[rank_in_list(rows, listed, place, own_scores, impressions.doc_numbers)];
    };
    changes[std::int64_t{blockIdx.y} * observation_count + pair] =
        ndcg_change(kClickGain, discount(seen.winner), discount(seen.loser), ideal);
  }
}

// A thread owns a term of a member and adds its observations in order.
__global__ void __launch_bounds__(kThreads)
    fold_changes_kernel(const PairObservation* observations, std::int64_t observation_count,
                        std::int64_t terms, const std::int32_t* offsets, const std::int32_t* items,
                        const double* changes, double* weights, double* labels) {
  const std::int64_t term = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (term >= terms) return;
  const double* own_changes = changes + std::int64_t{blockIdx.y} * observation_count;
  double weight = 0.0;
  double label = 0.0;
  for (std::int32_t i = offsets[term]; i < offsets[term + 1]; ++i) {
    const double change = own_changes[items[i]];
    weight += change;
    if (observations[items[i]].first_wins != 0) label += change;
  }
  weights[std::int64_t{blockIdx.y} * terms + term] = weight;
  labels[std::int64_t{blockIdx.y} * terms + term] = label;
}

}  // namespace

void group_observations(Stream stream, const PairObservation* observations, std::int64_t count,
                        std::int64_t terms, std::int32_t* workspace, std::int32_t* offsets,
                        std::int32_t* items) {
  group_stably(stream, TermOfObservation{observations}, count, terms, workspace, offsets, items);
}

void ndcg_weights(Stream stream, const ImpressionView& impressions, const PairObservation* observations,
                  std::int64_t observation_count, std::int64_t terms, const std::int32_t* offsets,
                  const std::int32_t* items, std::int64_t members, std::int64_t docs, const float* scores,
                  double* changes, double* weights, double* labels) {
  if (members == 0 || terms == 0) return;
  const auto stacked = count_of(members);
  if (impressions.count > 0) {
    launch(ndcg_changes_kernel, dim3{count_of(parts_of(impressions.count, kWarps)), stacked},
           dim3{kThreads}, 0, stream, impressions, observations, observation_count, docs, scores, changes);
  }
  launch(fold_changes_kernel, dim3{group_blocks(terms), stacked}, dim3{kThreads}, 0, stream, observations,
         observation_count, terms, offsets, items, changes, weights, labels);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
