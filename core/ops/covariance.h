#pragma once

#include <cstdint>
#include <span>

#include "core/math/pair_loss.h"
#include "core/ops/tangent_factors.h"
#include "core/runtime/execution_context.h"

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

// The diagonal covariance, A_kk = λ + scale · Σ_s g_{s,k}²: p numbers in double, in θ's order.
namespace olrank {

/// diagonal[k] += scale · Σ_s g_{s,k}², s over the pairs.
void add_to_diagonal(ExecutionContext& context, const TangentShape& shape, TangentFactors pairs,
                     double scale, std::span<double> diagonal);

/// m [docs × docs] (lower triangle) = scale · Σ_k weights[k] g_ik g_jk, with weights[k] ≥ 0. Unit by unit,
/// over the documents for which the unit is active: V²p multiplications if all are, a quarter of that if
/// half are, and no V × p matrix.
void diagonal_gram(ExecutionContext& context, const TangentShape& shape, TangentFactors docs, double scale,
                   std::span<const double> weights, double* m);

/// How trustworthy a set of squared widths is.
struct WidthHealth {
  std::int64_t negative = 0;  // pairs with w² < 0, which were set to 0
  std::int64_t lost = 0;      // pairs and M_ii that have lost their digits

  WidthHealth& operator+=(const WidthHealth& other) {
    negative += other.negative;
    lost += other.lost;
    return *this;
  }
};

/// width_sq[i, j] is pair_width() of documents i and j, exactly symmetric; only M's lower triangle is read.
/// Both are [docs × docs] and may be the same array.
WidthHealth pair_width_sq(ExecutionContext& context, std::int64_t docs, const double* m, double* width_sq);

/// distance_sq [rows × rows] = ‖h_i − h_j‖² of the rows of h [rows × columns], exactly symmetric and never
/// negative: from the norms and products, and where these cancel from the difference itself. Runs on the
/// calling thread.
void row_distance_sq(std::int64_t rows, std::int64_t columns, const double* h, double* distance_sq);

}  // namespace olrank
