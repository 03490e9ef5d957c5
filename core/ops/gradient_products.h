#pragma once

#include <cstdint>
#include <span>

#include "core/ops/relu_network.h"
#include "core/ops/tangent_factors.h"
#include "core/runtime/execution_context.h"

// Products of gradients with vectors, from tangent factors: no gradient is ever written out. In double.
namespace olrank {

/// products[i] = g(x_i)·v for a vector v [p].
void gradient_products(ExecutionContext& context, const TangentShape& shape, TangentFactors docs,
                       std::span<const double> v, std::span<double> products);

/// sum[k] = Σ_i weights[i] g_k(x_i), k = 1…p.
void gradient_sum(ExecutionContext& context, const TangentShape& shape, TangentFactors docs,
                  std::span<const double> weights, std::span<double> sum);

/// products[s] = g_s·v and sum = Σ_s weights[s] g_s for pairs, g_s = g(winner) − g(loser).
void pair_gradient_products(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                            std::span<const double> v, std::span<double> products);
void pair_gradient_sum(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                       std::span<const double> weights, std::span<double> sum);

/// The distinct pairs of a history under a linear score, each with all its repetitions: z_s = row_s·θ is
/// the score difference of its two documents, of which the first won `first_wins` times out of `count`.
struct FoldedPairs {
  // Rows, θ and gradients are padded with zeros to a multiple of this.
  static constexpr std::int64_t kPadding = 8;

  const double* rows = nullptr;  // [pairs × stride], x_first − x_second
  std::int64_t pairs = 0;
  std::int64_t stride = 0;             // features, padded
  const double* first_wins = nullptr;  // [pairs]; any number where labels are perturbed
  const double* count = nullptr;       // [pairs]
};

/// gradient ← Σ_s (count_s σ(z_s) − first_wins_s) row_s, the gradient of the summed cross-entropy.
/// `curvature`, unless empty, receives count_s σ(z_s)(1 − σ(z_s)). Sums run over blocks of fixed size in a
/// fixed order: the same bits for any number of threads and on any CPU.
void folded_pair_gradient(ExecutionContext& context, const FoldedPairs& pairs,
                          std::span<const double> theta, std::span<double> gradient,
                          std::span<double> curvature);

/// Σ_s first_wins_s ℓ(z_s) + (count_s − first_wins_s) ℓ(−z_s) with ℓ(z) = −log σ(z).
double folded_pair_loss(const FoldedPairs& pairs, std::span<const double> theta);

/// Finds the derivative of a loss by every document's score, from all scores.
using ScoreSlopes = FunctionRef<void(std::span<const float> scores, std::span<double> slopes)>;

/// gradient [p] = scale · Σ_i slopes[i] ∇_θ f(x_i; θ), by one forward and one backward pass over the
/// documents. Passes are in float32; sums over blocks of documents are in double.
void score_gradient(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                    FeatureMatrix docs, ScoreSlopes find_slopes, double scale, std::span<double> gradient);

}  // namespace olrank
