#pragma once

#include <cstdint>

#include "core/math/host_device.h"
#include "core/ops/inverse_factor.h"
#include "cuda/ops/pair_corner.h"
#include "cuda/runtime/stream.h"

// core/ops/inverse_factor.h on the device, and what the dual form of the full covariance makes of it. Row
// blocks lie one after another, and every row is one of L⁻¹: reading the factor once more for new rows
// costs a card little.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Where row block b begins; also the numbers that b blocks take.
OLRANK_HOST_DEVICE constexpr std::int64_t factor_offset(std::int64_t b) {
  return InverseFactor::kBlock * InverseFactor::kBlock * (b * (b + 1) / 2);
}
/// Where row `row` of L⁻¹ begins.
OLRANK_HOST_DEVICE constexpr std::int64_t factor_row(std::int64_t row) {
  const std::int64_t b = row / InverseFactor::kBlock;
  return factor_offset(b) + row % InverseFactor::kBlock * (InverseFactor::kBlock * (b + 1));
}
/// Numbers that `size` rows take.
constexpr std::int64_t factor_numbers(std::int64_t size) {
  return factor_offset((size + InverseFactor::kBlock - 1) / InverseFactor::kBlock);
}

/// Doubles of workspace that apply_factor() takes.
std::int64_t apply_factor_workspace(std::int64_t n, std::int64_t columns);

/// y [n × columns] = L⁻¹ x, rows `stride` numbers apart in both; what lies above L⁻¹'s diagonal is not
/// read.
void apply_factor(Stream stream, std::int64_t n, const double* factor, std::int64_t columns,
                  const double* x, double* workspace, double* y, std::int64_t stride);

/// y [n] = L⁻ᵀ x.
void apply_factor_transposed(Stream stream, std::int64_t n, const double* factor, const double* x,
                             double* y);

/// Doubles of workspace that dual_gram() takes.
std::int64_t dual_gram_workspace(std::int64_t n, std::int64_t docs);

/// m [docs × docs] ← (m − sᵀs)/λ, lower triangle, with s [n × docs], rows `stride` apart: from K_VV to M.
void dual_gram(Stream stream, std::int64_t n, std::int64_t docs, const double* s, std::int64_t stride,
               double lambda, double* workspace, double* m);

/// Doubles of workspace that append_pairs() takes.
std::int64_t append_workspace(std::int64_t n, std::int64_t pairs);

/// Appends up to kMostPairsPerBatch pairs of the documents whose s = L⁻¹K_nV and M lie here: what the
/// widths of this very query left behind is all that the new rows need beside one pass over L⁻¹. `factor`
/// has room for n + pairs rows.
void append_pairs(Stream stream, std::int64_t n, double* factor, std::int64_t docs, const double* s,
                  std::int64_t stride, const double* m, double lambda, const PreferencePair* pairs,
                  std::int64_t count, double* workspace, CovarianceStatus* status);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
