#pragma once

#include <cstdint>

#include "core/online/online_ranker.h"
#include "core/ops/pair_training.h"
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

/// The terms of each document, in order, so that a document's derivative is one sum in a fixed order,
/// without atomics.
struct PairIncidence {
  std::int32_t* offsets = nullptr;  // [docs + 1]
  std::int32_t* ends =
      nullptr;  // [2 · terms]: twice the term's number, plus 1 if the document is its second
};

/// Workspace of find_incidence(), in 32-bit words.
std::int64_t incidence_workspace(std::int64_t docs, std::int64_t terms);

/// Indexes terms among `docs` documents; it must be called again after terms were added. A term whose first
/// document is −1 is padding.
void find_incidence(Stream stream, const PairTerm* terms, std::int64_t count, std::int64_t docs,
                    std::int32_t* workspace, const PairIncidence& incidence);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
