#pragma once

#include <cstdint>

#include "core/math/portable_exp.h"
#include "core/ops/tangent_factors.h"
#include "cuda/ops/layer_table.h"
#include "cuda/ops/pair_corner.h"
#include "cuda/ops/relu_layers.h"
#include "cuda/runtime/products.h"

// The device version of core/ops/covariance.h: A⁻¹ [p × p] in double.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// ∂score/∂θ_k of a document, from its row of factors.
OLRANK_HOST_DEVICE inline double gradient_number(const LayerTable& layers, const float* row,
                                                 std::int64_t k) {
  std::int64_t l = layers.depth - 1;
  while (layers.layer[l].weight > k) --l;
  const NetworkLayer& layer = layers.layer[l];
  if (layer.has_bias() && k >= layer.bias) return double{row[layer.delta + k - layer.bias]};
  const std::int64_t at = k - layer.weight;
  return double{row[layer.delta + at / layer.columns]} * double{row[layer.input + at % layer.columns]};
}

/// A⁻¹ = I/λ: no pairs yet.
void reset_inverse_covariance(Stream stream, std::int64_t parameters, double lambda, double* inverse);

/// A⁻¹ = `inverse` − QᵀQ: each pair that was observed is a row of Q, until it has kRows of them, which one
/// product then takes out of `inverse`.
struct DelayedInverse {
  static constexpr std::int64_t kRows = kMostPairsPerBatch;

  double* inverse = nullptr;  // [p × p]
  double* tail = nullptr;     // [kRows × p], Q and zeros
  std::int64_t rows = 0;      // of Q
};

/// y [count × p] = x A⁻¹. The workspace takes count × kRows doubles.
void apply_inverse(Products& products, std::int64_t parameters, std::int64_t count, const double* x,
                   const DelayedInverse& a, double* workspace, double* y);

/// Doubles of workspace that inverse_covariance_gram() takes.
std::int64_t inverse_gram_workspace(const TangentShape& shape, std::int64_t docs);

/// w [docs × p] = G A⁻¹ and m [docs × docs] = scale · G A⁻¹ Gᵀ, as dense products. All
/// arrays begin at multiples of 16 bytes.
void inverse_covariance_gram(Products& products, const TangentShape& shape, const FactorRows& rows,
                             double scale, const DelayedInverse& a, double* workspace, double* w,
                             double* m);

/// Adds rows to Q for pairs of the documents that w and M were computed for, with a workspace of 2 count²
/// doubles. They are differences of w's rows, so that the update does not touch `inverse`.
void observe_in_inverse(Stream stream, std::int64_t parameters, std::int64_t docs, const double* w,
                        const double* m, double scale, const PreferencePair* pairs, std::int64_t count,
                        double* workspace, DelayedInverse& a, CovarianceStatus* status);

/// Takes QᵀQ out of `inverse`, and all rows from Q.
void close_inverse(Products& products, std::int64_t parameters, DelayedInverse& a);

/// Copies the lower triangle of a [n × n] to the upper one.
void mirror_lower(Stream stream, std::int64_t n, double* a);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
