#pragma once

#include <cstdint>

#include "core/online/online_ranker.h"
#include "cuda/runtime/stream.h"

// Both forms of the full covariance add a query's pairs through I + ΔMΔᵀ, where Δ's rows are
// e_winner − e_loser and M comes from the query's widths.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

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

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
