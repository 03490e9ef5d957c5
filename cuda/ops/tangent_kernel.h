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

/// The tangent factors of every document under every member, and scores if `out` has arrays for them. The
/// device version of core/ops/tangent_factors.h; features [docs × d] are on the device too. Two launches
/// for two layers, three more for each further layer.
void tangent_factors(Products& products, const NetworkStack& stack, const float* features,
                     const FactorRows& rows, const ScoreArrays& out);

/// Copies the documents' rows of each pair, winner then loser, for the history of a covariance. pairs
/// [count × 2] are documents of `rows`, to [2 · count × stride].
void gather_pairs(Stream stream, const FactorRows& rows, const std::int32_t* pairs, std::int64_t count,
                  float* to);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
