#pragma once

#include <cstdint>

#include "core/ops/tangent_factors.h"
#include "cuda/ops/relu_layers.h"

// The device version of core/ops/gradient_products.h, in double; g is never written out. If `skip` points
// to a number other than 0, a call does nothing, so that a captured loop can end early.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Doubles of workspace.
std::int64_t gradient_products_workspace(const TangentShape& shape, std::int64_t docs);
std::int64_t gradient_sum_workspace(const TangentShape& shape, std::int64_t docs);

/// products [docs] = g(x_i)·v for a vector v [p].
void gradient_products(Stream stream, const TangentShape& shape, const FactorRows& rows, const double* v,
                       double* workspace, double* products, const std::int32_t* skip = nullptr);

/// sum [p] = Σ_i weights[i] g(x_i).
void gradient_sum(Stream stream, const TangentShape& shape, const FactorRows& rows, const double* weights,
                  double* workspace, double* sum, const std::int32_t* skip = nullptr);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
