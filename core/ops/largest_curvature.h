#pragma once

#include <span>

#include "core/math/optimizer_step.h"
#include "core/ops/pair_training.h"
#include "core/runtime/execution_context.h"

namespace olrank {

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

}  // namespace olrank
