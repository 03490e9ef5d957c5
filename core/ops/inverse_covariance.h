#pragma once

#include <cstdint>
#include <span>

#include "core/ops/tangent_factors.h"

// A⁻¹ as a full matrix, [p × p] in double and symmetric to the bit, for A = λI + scale · Σ_s g_s g_sᵀ.
namespace olrank {

/// A⁻¹ = I/λ: no pairs yet.
void set_inverse_covariance(std::int64_t parameters, double lambda, double* inverse);

/// A⁻¹ after `pairs` more: A⁻¹ − P (I + ΓP)⁻¹ Pᵀ with Γ [k × p] the rows √scale g_s and P = A⁻¹Γᵀ; O(kp²).
/// The rank-one form with the parentheses of the literature, (A⁻¹ggᵀ)A⁻¹, is O(p³). Returns the increase of
/// log det A. Throws NumericError if rounding has made I + ΓP indefinite or a gradient is not finite, with
/// A⁻¹ unchanged where there are at most 128 pairs.
double update_inverse_covariance(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                                 double scale, double* inverse);

/// A⁻¹ from the whole history at once. Returns log det(A)/det(λI).
double inverse_covariance_of(ExecutionContext& context, const TangentShape& shape, TangentFactors history,
                             double lambda, double scale, double* inverse);

/// m [docs × docs] = scale · G A⁻¹ Gᵀ, G's rows the documents' gradients.
void inverse_covariance_gram(ExecutionContext& context, const TangentShape& shape, TangentFactors docs,
                             double scale, const double* inverse, double* m);

}  // namespace olrank
