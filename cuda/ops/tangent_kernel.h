#pragma once

#include <cstdint>

#include "cuda/ops/relu_layers.h"

// The device version of core/ops/tangent_kernel.h: inner products of gradients from their factors, in
// double, without intermediate results in global memory.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// kernel [docs × docs] (lower triangle) = scale · g(x_i)·g(x_j).
void doc_kernel(Stream stream, const NetworkShape& shape, const FactorRows& docs, double scale,
                double* kernel);

/// kernel [pairs × docs] = scale · g_s·g(x_j), rows `stride` numbers apart; pair s is the rows 2s (winner)
/// and 2s + 1 of `pairs`.
void pair_doc_kernel(Stream stream, const NetworkShape& shape, const FactorRows& pairs,
                     const FactorRows& docs, double scale, double* kernel, std::int64_t stride);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
