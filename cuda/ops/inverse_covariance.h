#pragma once

#include <cstdint>

#include "core/math/portable_exp.h"
#include "core/ops/tangent_factors.h"
#include "cuda/ops/pair_corner.h"
#include "cuda/ops/relu_layers.h"
#include "cuda/runtime/products.h"

// The device version of core/ops/covariance.h: A⁻¹ [p × p] in double, symmetric to the bit.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Offsets of a parameter's two factors in a document's row; `input` is −1 for a bias. Filled once per
/// network.
struct ParameterTable {
  std::int32_t* delta = nullptr;  // [p]
  std::int32_t* input = nullptr;  // [p]
};
/// ∂score/∂θ_k of a document, from its row of factors.
OLRANK_HOST_DEVICE inline double gradient_number(const ParameterTable& table, const float* row,
                                                 std::int64_t k) {
  const std::int32_t input = table.input[k];
  return static_cast<double>(row[table.delta[k]]) * (input < 0 ? 1.0 : static_cast<double>(row[input]));
}
void fill_parameter_table(Stream stream, const TangentShape& shape, const ParameterTable& table);

/// A⁻¹ = I/λ: no pairs yet.
void reset_inverse_covariance(Stream stream, std::int64_t parameters, double lambda, double* inverse);

/// Doubles of workspace that inverse_covariance_gram() takes.
std::int64_t inverse_gram_workspace(const TangentShape& shape, std::int64_t docs);

/// w [docs × p] = G A⁻¹ and m [docs × docs] (lower triangle) = scale · G A⁻¹ Gᵀ, as dense products. All
/// arrays begin at multiples of 16 bytes.
void inverse_covariance_gram(Products& products, const TangentShape& shape, const ParameterTable& table,
                             const FactorRows& rows, double scale, const double* inverse, double* workspace,
                             double* w, double* m);

/// Doubles of workspace that update_inverse_covariance() takes.
std::int64_t inverse_update_workspace(std::int64_t parameters, std::int64_t pairs);

/// Updates A⁻¹ by pairs of the documents that w and M were computed for. P is a difference of w's rows, so
/// that the update reads half of A⁻¹ and writes it once.
void update_inverse_covariance(Stream stream, std::int64_t parameters, std::int64_t docs, const double* w,
                               const double* m, double scale, const PreferencePair* pairs,
                               std::int64_t count, double* workspace, double* inverse,
                               CovarianceStatus* status);

/// y [columns × p] = x A⁻¹, in one pass over A⁻¹ for every eight columns.
void apply_inverse_covariance(Stream stream, std::int64_t parameters, const double* inverse,
                              std::int64_t columns, const double* x, double* y);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
