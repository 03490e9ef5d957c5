#pragma once

#include <cstdint>

#include "cuda/ops/relu_layers.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

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
