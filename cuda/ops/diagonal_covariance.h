#pragma once

#include <cstdint>

#include "core/online/online_ranker.h"
#include "core/ops/tangent_factors.h"
#include "cuda/ops/relu_layers.h"

// The device version of core/ops/covariance.h. In addition to A's diagonal, callers keep
// root[k] = √(scale/A_kk) for widths.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

struct DiagonalState {
  double* diagonal = nullptr;  // [p], A_kk
  double* root = nullptr;      // [p]
};

/// A = λI.
void reset_diagonal(Stream stream, const TangentShape& shape, double lambda, double scale,
                    const DiagonalState& state);

/// A_kk += scale · Σ_s g_{s,k}² over pairs [count] of documents of `rows`, pairs in order.
void add_to_diagonal(Stream stream, const TangentShape& shape, const FactorRows& rows,
                     const PreferencePair* pairs, std::int64_t count, double scale,
                     const DiagonalState& state);

/// Workspace of diagonal_gram(), in doubles.
std::int64_t diagonal_gram_workspace(const TangentShape& shape, std::int64_t docs);

/// m [docs × docs] (lower triangle) = Σ_k root[k]² g_ik g_jk, in double on tensor cores. g is computed
/// tile by tile in shared memory, and units inactive for a tile's documents are skipped.
void diagonal_gram(Stream stream, const TangentShape& shape, const FactorRows& rows, const double* root,
                   double* workspace, double* m);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
