#pragma once

#include <cstdint>
#include <span>

#include "core/runtime/execution_context.h"

namespace olrank {

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

}  // namespace olrank
