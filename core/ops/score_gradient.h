#pragma once

#include <cstdint>
#include <span>

#include "core/ops/relu_network.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// Finds the derivative of a loss by every document's score, from all scores.
using ScoreSlopes = FunctionRef<void(std::span<const float> scores, std::span<double> slopes)>;

/// gradient [p] = scale · Σ_i slopes[i] ∇_θ f(x_i; θ), by one forward and one backward pass over the
/// documents. Passes are in float32; sums over blocks of documents are in double.
void score_gradient(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                    FeatureMatrix docs, ScoreSlopes find_slopes, double scale, std::span<double> gradient);

}  // namespace olrank
