#pragma once

#include <cstdint>

#include "core/math/portable_exp.h"
#include "core/ops/tangent_factors.h"
#include "cuda/ops/layer_table.h"
#include "cuda/ops/pair_corner.h"
#include "cuda/ops/relu_layers.h"
#include "cuda/runtime/products.h"

// The device version of core/ops/covariance.h: A⁻¹ [p × p] in double, symmetric to the bit.
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

/// Doubles of workspace that inverse_covariance_gram() takes.
std::int64_t inverse_gram_workspace(const TangentShape& shape, std::int64_t docs);

/// w [docs × p] = G A⁻¹ and m [docs × docs] = scale · G A⁻¹ Gᵀ, as dense products. All
/// arrays begin at multiples of 16 bytes.
void inverse_covariance_gram(Products& products, const TangentShape& shape, const FactorRows& rows,
                             double scale, const double* inverse, double* workspace, double* w, double* m);

/// Doubles of workspace that update_inverse_covariance() takes.
std::int64_t inverse_update_workspace(std::int64_t parameters, std::int64_t pairs);

/// Updates A⁻¹ by pairs of the documents that w and M were computed for. P is a difference of w's rows, so
/// that the update reads half of A⁻¹ and writes it once.
void update_inverse_covariance(Stream stream, std::int64_t parameters, std::int64_t docs, const double* w,
                               const double* m, double scale, const PreferencePair* pairs,
                               std::int64_t count, double* workspace, double* inverse,
                               CovarianceStatus* status);

/// Copies the lower triangle of a [n × n] to the upper one.
void mirror_lower(Stream stream, std::int64_t n, double* a);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
