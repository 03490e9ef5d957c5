#pragma once

#include <cstdint>

#include "core/math/pair_loss.h"
#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/pair_training.h"

// The terms of a history as its kernels see them: score differences and what the loss takes from them, in
// double.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Terms or parameters in one sum of the loss; such sums are then added in order.
constexpr std::int64_t kPerLossBlock = 2048;

/// A term with a member's score difference, weight and labels.
struct SeenTerm {
  double z;
  double weight;
  double labels;
};

/// `scores` are the member's.
__device__ inline SeenTerm see_term(const PairHistoryView& history, const float* scores,
                                    std::int64_t member, std::int64_t t) {
  const PairTerm& term = history.terms[t];
  const std::int64_t place = member * history.count + t;
  return {double{scores[term.first]} - double{scores[term.second]},
          history.weights == nullptr ? term.weight : history.weights[place],
          history.labels == nullptr ? term.labels : history.labels[place]};
}

/// What a term adds to the derivative by the score of its document `end` of PairIncidence.
__device__ inline double slope_at_end(const PairHistoryView& history, const float* scores,
                                      std::int64_t member, std::int32_t end) {
  const SeenTerm term = see_term(history, scores, member, end / 2);
  const double slope = pair_term_slope(sigmoid(term.z), term.weight, term.labels);
  return end % 2 == 0 ? slope : -slope;
}

/// The sums of the loss: blocks of terms, then blocks of parameters where there is a prior.
struct LossBlocks {
  std::int64_t of_terms = 0;
  std::int64_t all = 0;

  LossBlocks(std::int64_t terms, std::int64_t parameters, bool has_prior)
      : of_terms((terms + kPerLossBlock - 1) / kPerLossBlock),
        all(of_terms + (has_prior ? (parameters + kPerLossBlock - 1) / kPerLossBlock : 0)) {}
};

/// One of these sums by the threads of a block, returned to thread 0. `shared` holds a number per warp.
/// Deterministic.
__device__ inline double loss_sum(const PairHistoryView& history, const float* scores, const float* theta,
                                  std::int64_t parameters, const float* centres, const LossBlocks& blocks,
                                  std::int64_t member, std::int64_t block, double* shared) {
  const bool of_terms = block < blocks.of_terms;
  const std::int64_t begin = (of_terms ? block : block - blocks.of_terms) * kPerLossBlock;
  const std::int64_t end = min(begin + kPerLossBlock, of_terms ? history.count : parameters);
  double sum = 0.0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    if (of_terms) {
      if (history.terms[i].first < 0) continue;
      const SeenTerm term = see_term(history, scores + member * history.docs, member, i);
      sum += pair_term_loss(term.z, term.weight, term.labels);
    } else {
      const std::int64_t place = member * parameters + i;
      const double centre = centres == nullptr ? 0.0 : double{centres[place]};
      sum += squared_distance(double{theta[place]}, centre);
    }
  }
  return block_sum(sum, shared);
}

/// A member's loss from its sums, in order.
__device__ inline double loss_of_sums(const LossBlocks& blocks, const double* sums,
                                      const StackedObjective& objective) {
  double data = 0.0;
  double prior = 0.0;
  for (std::int64_t block = 0; block < blocks.of_terms; ++block) data += sums[block];
  for (std::int64_t block = blocks.of_terms; block < blocks.all; ++block) prior += sums[block];
  return objective.data_scale * data + objective.prior_weight * prior;
}

/// The prior's part of a gradient.
__device__ inline double prior_slope_at(const StackedObjective& objective, std::int64_t place,
                                        double theta) {
  if (objective.prior_weight == 0.0) return 0.0;
  const double centre = objective.centre == nullptr ? 0.0 : double{objective.centre[place]};
  return prior_slope(objective.prior_weight, theta, centre);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
