#pragma once

#include <cstdint>

#include "core/online/online_ranker.h"
#include "cuda/ops/tangent_factors.h"

// The device version of core/ops/covariance.h: A⁻¹ [p × p] in double.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

// Both forms of the full covariance add a query's pairs through I + ΔMΔᵀ, where Δ's rows are
// e_winner − e_loser and M comes from the query's widths.

/// The status of a covariance, on the device.
struct CovarianceStatus {
  double log_det = 0.0;     // log det(A)/det(λI), updated by each batch of pairs
  std::int32_t failed = 0;  // 1 once rounding has made a factor indefinite; nothing has changed since
};

/// The largest batch of pairs.
constexpr std::int64_t kMostPairsPerBatch = 256;

/// inverse [count × count] ← D⁻¹ with D Dᵀ = I + ΔMΔᵀ; corner [count × count] holds D. Only M's
/// lower triangle [docs × docs] is read. Runs in one block, as a round has few pairs.
void factor_pair_corner(Stream stream, std::int64_t docs, const double* m, const PreferencePair* pairs,
                        std::int64_t count, double* corner, double* inverse, CovarianceStatus* status);

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
