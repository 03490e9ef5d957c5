#pragma once

#include <cstdint>

#include "cuda/ops/pair_corner.h"
#include "cuda/ops/relu_layers.h"

// The device version of core/ops/inverse_covariance.h: A⁻¹ [p × p] in double. Only the lower triangle is
// stored, read and written.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Offsets of a parameter's two factors in a document's row; `input` is −1 for a bias. Filled once per
/// network.
struct ParameterTable {
  std::int32_t* delta = nullptr;  // [p]
  std::int32_t* input = nullptr;  // [p]
};
void fill_parameter_table(Stream stream, const NetworkShape& shape, const ParameterTable& table);

/// A⁻¹ = I/λ: no pairs yet.
void reset_inverse_covariance(Stream stream, std::int64_t parameters, double lambda, double* inverse);

/// Doubles of workspace that inverse_covariance_gram() takes.
std::int64_t inverse_gram_workspace(const NetworkShape& shape, std::int64_t docs);

/// w [docs × p] = G A⁻¹ and m [docs × docs] (lower triangle) = scale · G A⁻¹ Gᵀ, with G formed tile by
/// tile.
void inverse_covariance_gram(Stream stream, const NetworkShape& shape, const ParameterTable& table,
                             const FactorRows& rows, double scale, const double* inverse, double* workspace,
                             double* w, double* m);

/// Doubles of workspace that update_inverse_covariance() takes.
std::int64_t inverse_update_workspace(std::int64_t parameters, std::int64_t pairs);

/// Updates A⁻¹ by pairs of the documents that w and M were computed for. P is a difference of w's rows, so
/// that the update reads and writes the triangle once.
void update_inverse_covariance(Stream stream, std::int64_t parameters, std::int64_t docs, const double* w,
                               const double* m, double scale, const PreferencePair* pairs,
                               std::int64_t count, double* workspace, double* inverse,
                               CovarianceStatus* status);

/// y [p] = A⁻¹ x.
void apply_inverse_covariance(Stream stream, std::int64_t parameters, const double* inverse,
                              const double* x, double* y);

/// root[k] = √(scale · A⁻¹_kk), for widths from the inverse's diagonal.
void roots_of_inverse(Stream stream, std::int64_t parameters, double scale, const double* inverse,
                      double* root);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
