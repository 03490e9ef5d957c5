#pragma once

#include <span>

#include "core/ops/tangent_factors.h"

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

}  // namespace olrank
