#pragma once

#include <cstdint>
#include <span>

#include "core/ops/tangent_factors.h"

// The diagonal covariance, A_kk = λ + scale · Σ_s g_{s,k}²: p numbers in double, in θ's order.
namespace olrank {

/// diagonal[k] += scale · Σ_s g_{s,k}², s over the pairs.
void add_to_diagonal(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                     double scale, std::span<double> diagonal);

/// m [docs × docs] (lower triangle) = scale · Σ_k weights[k] g_ik g_jk, with weights[k] ≥ 0. Unit by unit,
/// over the documents for which the unit is active: V²p multiplications if all are, a quarter of that if
/// half are, and no V × p matrix.
void diagonal_gram(ExecutionContext& context, const TangentShape& shape, TangentFactors docs, double scale,
                   std::span<const double> weights, double* m);

}  // namespace olrank
