#pragma once

#include <cstdint>
#include <span>

#include "core/math/normal.h"
#include "core/math/optimizer_step.h"
#include "core/ops/tangent_factors.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"

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

/// κ = λ_max(Σ weight · g gᵀ)/4, g = g(first) − g(second): an upper bound of the curvature of the sum of
/// the terms for constant gradients, as σ' ≤ 1/4. Power iteration from `vector` [p], which is left at the
/// eigenvector found; a zero vector is replaced by a random one. Stops once the estimate grows by less
/// than `tolerance`, relatively, or after `most` iterations. 0 without terms.
double largest_curvature(ExecutionContext& context, const TangentShape& shape, TangentFactors docs,
                         std::span<const PairTerm> terms, std::span<double> vector,
                         double tolerance = kCurvatureTolerance, int most = kMostCurvatureIterations);

/// Finds the curvature of `docs` documents whose gradients are known by their products alone: products
/// [docs] = G v and sum [p] = Gᵀ weights.
double largest_curvature(ExecutionContext& context, std::int64_t docs,
                         FunctionRef<void(std::span<const double> v, std::span<double> products)> multiply,
                         FunctionRef<void(std::span<const double> weights, std::span<double> sum)> add_up,
                         std::span<const PairTerm> terms, std::span<double> vector,
                         double tolerance = kCurvatureTolerance, int most = kMostCurvatureIterations);

/// A folded pair of a sample of the history, and where its weight comes from.
struct SampledTerm {
  std::int32_t term = 0;    // of the history; −1 is padding
  double own_weight = 0.0;  // of the round's own pairs
  double own_labels = 0.0;
  double drawn_weight = 0.0;  // of pairs from the history, scaled to stand for all; negative: forgotten
  double drawn_labels = 0.0;
  double others_weight = 0.0;  // of all of the term's pairs but for its own and the forgotten ones
};

/// The labels of a sampled term's parts.
struct SampledLabels {
  double own = 0.0;
  double drawn = 0.0;
};

/// With the noise of an ensemble member since `noise_round`, the round of its latest training on the whole
/// history. As pairs come and are forgotten, a term of weight W has the noise that this training would give
/// it now, ν √W times one draw, so that its variance is ν² W at any time: pairs that come or go take the
/// difference with them, and drawn ones have their share.
OLRANK_HOST_DEVICE inline SampledLabels noisy_sampled_labels(const SampledTerm& source, PhiloxKey key,
                                                             std::uint32_t noise_round, double deviation) {
  const auto term = static_cast<std::uint32_t>(source.term);
  const double normal = RngStream(key, noise_round, term).normal();
  const double others = source.others_weight;
  const double own_noise = noise_change(others, others + source.own_weight, deviation, normal);
  const double drawn =
      source.drawn_weight < 0.0
          ? exact_add(source.drawn_labels,
                      noise_change(others - source.drawn_weight, others, deviation, normal))
          : noisy_labels_of_share(source.drawn_labels, source.drawn_weight, others, deviation, normal);
  return {exact_add(source.own_labels, own_noise), drawn};
}

}  // namespace olrank
