#pragma once

#include <cstdint>

#include "core/math/portable_exp.h"
#include "core/ops/inverse_factor.h"
#include "cuda/ops/pair_corner.h"
#include "cuda/runtime/stream.h"

// The device version of core/ops/inverse_factor.h, and the dual form of the full covariance. Row blocks are
// stored one after another, and every row is a row of L⁻¹: one more pass over the factor for new rows is
// cheap on a GPU.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Offset of row block b, which is also the size of b blocks.
OLRANK_HOST_DEVICE constexpr std::int64_t factor_offset(std::int64_t b) {
  return InverseFactor::kBlock * InverseFactor::kBlock * (b * (b + 1) / 2);
}
/// Offset of row `row` of L⁻¹.
OLRANK_HOST_DEVICE constexpr std::int64_t factor_row(std::int64_t row) {
  const std::int64_t b = row / InverseFactor::kBlock;
  return factor_offset(b) + row % InverseFactor::kBlock * (InverseFactor::kBlock * (b + 1));
}
/// Size of the blocks that hold `size` rows, in numbers.
constexpr std::int64_t factor_numbers(std::int64_t size) {
  return factor_offset((size + InverseFactor::kBlock - 1) / InverseFactor::kBlock);
}

/// Workspace of apply_factor(), in doubles.
std::int64_t apply_factor_workspace(std::int64_t n, std::int64_t columns);

/// y [n × columns] = L⁻¹ x, rows `stride` numbers apart in both. Numbers above L⁻¹'s diagonal are not
/// read.
void apply_factor(Stream stream, std::int64_t n, const double* factor, std::int64_t columns,
                  const double* x, double* workspace, double* y, std::int64_t stride);

/// Workspace of apply_factor_transposed(), in doubles.
std::int64_t apply_factor_transposed_workspace(std::int64_t n, std::int64_t columns);

/// y [columns × n] = (L⁻ᵀ x)ᵀ for x [n × columns], in one pass over L⁻¹ for every eight columns.
void apply_factor_transposed(Stream stream, std::int64_t n, const double* factor, std::int64_t columns,
                             const double* x, double* workspace, double* y);

/// Workspace of dual_gram(), in doubles.
std::int64_t dual_gram_workspace(std::int64_t n, std::int64_t docs);

/// m [docs × docs] ← (m − sᵀs)/λ, lower triangle, with s [n × docs], rows `stride` apart: from K_VV to M.
void dual_gram(Stream stream, std::int64_t n, std::int64_t docs, const double* s, std::int64_t stride,
               double lambda, double* workspace, double* m);

/// Workspace of append_pairs(), in doubles.
std::int64_t append_workspace(std::int64_t n, std::int64_t pairs);

/// Appends up to kMostPairsPerBatch pairs of the documents that s = L⁻¹K_nV and M were computed for. The
/// new rows need only these results of the query's widths and one pass over L⁻¹. `factor` must have room
/// for n + count rows.
void append_pairs(Stream stream, std::int64_t n, double* factor, std::int64_t docs, const double* s,
                  std::int64_t stride, const double* m, double lambda, const PreferencePair* pairs,
                  std::int64_t count, double* workspace, CovarianceStatus* status);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
