#pragma once

#include <cstdint>

#include "core/ops/tangent_factors.h"
#include "cuda/ops/relu_layers.h"

// The device version of core/ops/tangent_factors.h: inner products of gradients from their factors, in
// double, without intermediate results in global memory.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The kernels that the widths of a query need, in one launch: of_docs [docs × docs] (lower triangle) =
/// scale · g(x_i)·g(x_j), and of_pairs [pairs × docs] = scale · g_s·g(x_j), rows `stride` numbers apart.
/// Pair s is the rows 2s (winner) and 2s + 1 of `pairs`, which may have none. Without of_docs, null, only
/// the second.
void query_kernels(Stream stream, const TangentShape& shape, const FactorRows& docs,
                   const FactorRows& pairs, double scale, double* of_docs, double* of_pairs,
                   std::int64_t stride);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
