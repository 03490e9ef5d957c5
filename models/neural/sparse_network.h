#pragma once

#include <span>

#include "core/ops/relu_network.h"
#include "core/runtime/function_ref.h"

// Networks of sparse documents: the first layer is computed from the features that are not zero, the others
// as a network of its units. Up to the order of sums equal to the same network of dense documents.
namespace olrank {

/// score_docs() of sparse documents.
void score_sparse_docs(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                       FeatureMatrix docs, std::span<float> scores);

/// gradient += Σ_i weights[i] ∇_θ f(x_i; θ), with the weights that `weigh` finds from the scores.
void add_sparse_gradient(ExecutionContext& context, const NetworkShape& shape, std::span<const float> theta,
                         FeatureMatrix docs,
                         FunctionRef<void(std::span<const float> scores, std::span<double> weights)> weigh,
                         std::span<double> gradient);

}  // namespace olrank
