#pragma once

#include <cstdint>
#include <span>

#include "core/ops/tangent_factors.h"

namespace olrank {

/// All pairs of two documents folded into one term of the cross-entropy, pair_term_loss() of
/// z = f(first) − f(second).
struct PairTerm {
  std::int32_t first = 0;   // row of the distinct documents
  std::int32_t second = 0;  // another row
  double weight = 0.0;      // number of pairs, or the sum of their weights
  double labels = 0.0;  // sum of weight · label, label 1 where `first` won; noise may leave [0, weight]
};

/// An observed pair: its term, the ranks of its documents in the examined list, and the winner.
struct PairObservation {
  std::int32_t term = 0;
  std::int32_t winner = 0;  // −1 where lists are not kept
  std::int32_t loser = 0;
  std::int32_t first_wins = 0;
};

/// loss(θ) = data_scale · Σ terms + prior_weight · ‖θ − centre‖² + linear · θ.
struct PairObjective {
  double data_scale = 1.0;              // 1: sum form; 1/n: mean form
  double prior_weight = 0.0;            // mλ/2 in the paper protocol, λ in the reference protocol
  std::span<const float> centre;        // θ₀ in the paper protocol; empty: 0
  std::span<const double> linear = {};  // [p]; empty: 0
};

/// The loss at θ and its gradient [p], by one forward and one backward pass over the distinct documents:
/// exact, as the loss depends on documents and not on pairs. Passes are in float32; score differences, sums
/// over terms and sums over blocks of documents are in double.
double pair_loss_gradient(ExecutionContext& context, const NetworkShape& shape,
                          std::span<const float> theta, FeatureMatrix docs, std::span<const PairTerm> terms,
                          const PairObjective& objective, std::span<double> gradient);

/// The gradient only, with the same bits, without the logarithms of the loss.
void pair_gradient(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                   FeatureMatrix docs, std::span<const PairTerm> terms, const PairObjective& objective,
                   std::span<double> gradient);

/// The loss only.
double pair_loss(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                 FeatureMatrix docs, std::span<const PairTerm> terms, const PairObjective& objective);

// The parts of these for models that compute their own scores and gradients.

/// Σ terms.
double pair_loss_of_scores(ExecutionContext& context, std::span<const PairTerm> terms,
                           std::span<const float> scores);
/// Its derivative with respect to every document's score.
void pair_slopes_of_scores(ExecutionContext& context, std::span<const PairTerm> terms,
                           std::span<const float> scores, std::span<double> slopes);
/// The loss without the terms.
double parameter_loss(std::span<const float> theta, const PairObjective& objective);
/// Adds its gradient.
void add_parameter_gradient(std::span<const float> theta, const PairObjective& objective,
                            std::span<double> gradient);

}  // namespace olrank
