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

/// A member's own terms.
__device__ inline PairHistoryView history_of(PairHistoryView all, std::int64_t member) {
  all.terms += member * all.terms_step;
  return all;
}

/// `scores` are the member's.
__device__ inline SeenTerm see_term(const PairHistoryView& history, const float* scores,
                                    std::int64_t member, std::int64_t t) {
  const PairTerm& term = history.terms[t];
  const std::int64_t place = member * history.count + t;
  return {double{scores[term.first]} - double{scores[term.second]},
          history.weights == nullptr ? term.weight : history.weights[place],
          history.labels == nullptr ? term.labels : history.labels[place]};
}

/// Returns what a term adds to the derivative by the score of its document `end` of PairIncidence.
__device__ inline double slope_at_end(const PairHistoryView& history, const float* scores,
                                      std::int64_t member, std::int32_t end) {
  const SeenTerm term = see_term(history, scores, member, end / 2);
  const double slope = pair_term_slope(sigmoid(term.z), term.weight, term.labels);
  return end % 2 == 0 ? slope : -slope;
}

__device__ inline double centre_at(const StackedObjective& objective, std::int64_t place) {
  return objective.centre == nullptr ? 0.0 : double{objective.centre[place]};
}

/// The sums of the loss: blocks of terms, then blocks of parameters for the prior and for the linear term
/// where the objective has them.
struct LossBlocks {
  std::int64_t of_terms = 0;
  std::int64_t with_prior = 0;
  std::int64_t all = 0;

  LossBlocks(std::int64_t terms, std::int64_t parameters, bool has_prior, bool has_linear)
      : of_terms((terms + kPerLossBlock - 1) / kPerLossBlock),
        with_prior(of_terms + (has_prior ? of_parameters(parameters) : 0)),
        all(with_prior + (has_linear ? of_parameters(parameters) : 0)) {}
  LossBlocks(std::int64_t terms, std::int64_t parameters, const StackedObjective& objective)
      : LossBlocks(terms, parameters, objective.prior_weight != 0.0, objective.linear != nullptr) {}

 private:
  static std::int64_t of_parameters(std::int64_t parameters) {
    return (parameters + kPerLossBlock - 1) / kPerLossBlock;
  }
};

/// One of these sums by the threads of a block, returned to thread 0. `shared` holds a number per warp.
/// Deterministic.
__device__ inline double loss_sum(const PairHistoryView& history, const float* scores, const float* theta,
                                  std::int64_t parameters, const StackedObjective& objective,
                                  const LossBlocks& blocks, std::int64_t member, std::int64_t block,
                                  double* shared) {
  const bool of_terms = block < blocks.of_terms;
  const bool of_prior = !of_terms && block < blocks.with_prior;
  const std::int64_t first = of_terms ? 0 : of_prior ? blocks.of_terms : blocks.with_prior;
  const std::int64_t begin = (block - first) * kPerLossBlock;
  const std::int64_t end = min(begin + kPerLossBlock, of_terms ? history.count : parameters);
  double sum = 0.0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    if (of_terms) {
      if (history.terms[i].first < 0) continue;
      const SeenTerm term = see_term(history, scores + member * history.docs, member, i);
      sum += pair_term_loss(term.z, term.weight, term.labels);
    } else {
      const std::int64_t place = member * parameters + i;
      const double own{theta[place]};
      sum += of_prior ? squared_distance(own, centre_at(objective, place)) : objective.linear[place] * own;
    }
  }
  return block_sum(sum, shared);
}

/// A member's loss from its sums, in order.
__device__ inline double loss_of_sums(const LossBlocks& blocks, const double* sums,
                                      const StackedObjective& objective) {
  double data = 0.0;
  double prior = 0.0;
  double linear = 0.0;
  for (std::int64_t block = 0; block < blocks.of_terms; ++block) data += sums[block];
  for (std::int64_t block = blocks.of_terms; block < blocks.with_prior; ++block) prior += sums[block];
  for (std::int64_t block = blocks.with_prior; block < blocks.all; ++block) linear += sums[block];
  return objective.data_scale * data + objective.prior_weight * prior + linear;
}

/// The part of a gradient that depends on parameters alone.
__device__ inline double slope_of_parameter(const StackedObjective& objective, std::int64_t place,
                                            double theta) {
  double slope = objective.linear == nullptr ? 0.0 : objective.linear[place];
  if (objective.prior_weight != 0.0)
    slope += prior_slope(objective.prior_weight, theta, centre_at(objective, place));
  return slope;
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
