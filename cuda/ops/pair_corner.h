#pragma once

#include <cstdint>

#include "core/online/preference_pair.h"
#include "cuda/runtime/stream.h"

// What both forms of the full covariance need to take in a query's pairs: I + ΔMΔᵀ, Δ's rows the
// differences of winner and loser, M as the query's widths left it.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The state of a covariance, on the device.
struct CovarianceStatus {
  double log_det = 0.0;     // log det(A)/det(λI), grown by each batch of pairs
  std::int32_t failed = 0;  // 1 once rounding made a factor indefinite; nothing was changed since
};

/// Batches of pairs are no larger.
constexpr std::int64_t kMostPairsPerBatch = 256;

/// inverse [count × count] ← D⁻¹ with D Dᵀ = I + ΔMΔᵀ; corner [count × count] holds D. M [docs × docs] is
/// read in its lower triangle. One block's work: rounds bring few pairs.
void factor_pair_corner(Stream stream, std::int64_t docs, const double* m, const PreferencePair* pairs,
                        std::int64_t count, double* corner, double* inverse, CovarianceStatus* status);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
