#pragma once

#include <cstdint>
#include <span>

#include "core/ops/tangent_factors.h"

// Inner products of gradients from their factors,
// k(x, x') = g(x)·g(x') = Σ_l (δ_l·δ'_l)(h_{l−1}·h'_{l−1} + 1 with a bias), in double throughout. A set of
// pairs is a set of documents, winner then loser; its gradients are g_s = g(winner) − g(loser).
namespace olrank {

/// kernel [docs × docs] = scale · g(x_i)·g(x_j).
void doc_kernel(ExecutionContext& context, const TangentShape& shape, TangentFactors docs, double scale,
                double* kernel);

/// kernel [pairs × docs] = scale · g_s·g(x_j), rows `stride` numbers apart.
void pair_doc_kernel(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                     TangentFactors docs, double scale, double* kernel, std::int64_t stride);

/// kernel [pairs × others] = scale · g_s·g_t, rows `stride` numbers apart.
void pair_kernel(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                 TangentFactors others, double scale, double* kernel, std::int64_t stride);

}  // namespace olrank
