#pragma once

#include <cassert>
#include <cstdint>
#include <span>

#include "core/ops/relu_network.h"
#include "core/ops/tangent_shape.h"

namespace olrank {

/// Gradients g(x) = ∇_θ f(x; θ) in factored form: layer l's part is the outer product δ_l ⊗ h_{l−1} (and
/// δ_l for its bias), where δ includes the output's scale. A row holds h_0 δ_1 h_1 δ_2 … in float32, and
/// these numbers define g exactly. A non-owning view.
struct TangentFactors {
  const float* values = nullptr;  // [docs × shape.factors()]
  std::int64_t docs = 0;

  /// The shape is a NetworkShape or a TangentShape.
  const float* row(const auto& shape, std::int64_t doc) const { return values + doc * shape.factors(); }
};

/// The factors of every document, and its score unless `scores` is empty: score_docs()'s bits.
void tangent_factors(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                     FeatureMatrix docs, std::span<float> factors, std::span<float> scores = {},
                     std::span<float> magnitudes = {});

/// scale · g(x_i), parameters `begin` to `end`, of every document: rows [docs × (end − begin)], `stride`
/// numbers apart. Runs on the calling thread.
void expand_docs(const TangentShape& shape, TangentFactors docs, double scale, std::int64_t begin,
                 std::int64_t end, double* rows, std::int64_t stride);

/// Expands pairs: scale · (g(winner) − g(loser)); pair s is documents 2s (winner) and 2s + 1 (loser).
void expand_pairs(const TangentShape& shape, TangentFactors pairs, double scale, std::int64_t begin,
                  std::int64_t end, double* rows, std::int64_t stride);

}  // namespace olrank
