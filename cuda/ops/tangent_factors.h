#pragma once

#include <cstdint>

#include "cuda/ops/relu_layers.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The tangent factors of every document under every member, and scores where `out` asks for them:
/// core/ops/tangent_factors.h on the device, with features [docs × d] there too. Two launches for two
/// layers, two more for each layer beyond. Workspace: none.
void tangent_factors(Stream stream, const NetworkStack& stack, const float* features,
                     const FactorRows& rows, const ScoreArrays& out);

/// Copies rows of documents to the places of pairs, winner then loser: what becomes the history of a
/// covariance. pairs [count × 2] are documents of `rows`, to [2 · count × stride].
void gather_pairs(Stream stream, const FactorRows& rows, const std::int32_t* pairs, std::int64_t count,
                  float* to);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
