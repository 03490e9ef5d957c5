#pragma once

#include <cstdint>

#include "core/math/portable_exp.h"
#include "core/ops/inverse_factor.h"
#include "cuda/ops/inverse_covariance.h"
#include "cuda/runtime/stream.h"

// The device version of core/ops/inverse_factor.h, and the dual form of the full covariance. Row blocks of
// L⁻¹ are stored one after another, and the newest rows, which do not fill a block, are rows of L in an
// array of their own: a row costs no pass over L⁻¹, and a full block is inverted by one product.
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

/// The newest rows of L, below `head` rows of L⁻¹. A row has its `head` numbers left of the diagonal block
/// (U), then those of the block's inverse T, with zeros up to kBlock.
struct FactorTail {
  std::int64_t head = 0;
  std::int64_t rows = 0;
  double* values = nullptr;  // room for kBlock rows

  FactorTail() = default;
  /// Splits n rows into whole blocks and the newest.
  explicit FactorTail(std::int64_t n, double* numbers = nullptr)
      : head(n / InverseFactor::kBlock * InverseFactor::kBlock),
        rows(n % InverseFactor::kBlock),
        values(numbers) {}

  OLRANK_HOST_DEVICE std::int64_t stride() const { return head + InverseFactor::kBlock; }
  OLRANK_HOST_DEVICE const double* inverse_row(std::int64_t i) const {
    return values + i * stride() + head;
  }
  /// Size of an array of tails of at most this head.
  std::int64_t numbers() const { return InverseFactor::kBlock * stride(); }
};

/// Workspace of apply_factor(), in doubles.
std::int64_t apply_factor_workspace(std::int64_t n, std::int64_t columns);

/// y [n × columns] = L⁻¹ x by n rows of L⁻¹, rows `stride` numbers apart in both. Numbers above L⁻¹'s
/// diagonal are not read.
void apply_factor(Stream stream, std::int64_t n, const double* factor, std::int64_t columns,
                  const double* x, double* workspace, double* y, std::int64_t stride);

/// Workspace of apply_tail(), or of dual_gram(), in doubles.
std::int64_t tail_workspace(const FactorTail& tail, std::int64_t columns, bool with_gram);

/// The tail's rows of s = L⁻¹ x after those of the head: T (x − U s).
void apply_tail(Stream stream, const FactorTail& tail, std::int64_t columns, const double* x,
                double* workspace, double* s, std::int64_t stride);

/// Workspace of apply_factor_transposed(), in doubles.
std::int64_t apply_factor_transposed_workspace(std::int64_t head, std::int64_t columns);

/// y [columns × n] = (L⁻ᵀ x)ᵀ for x [n × columns].
void apply_factor_transposed(Stream stream, const FactorTail& tail, const double* factor,
                             std::int64_t columns, const double* x, double* workspace, double* y);

/// m [docs × docs] ← (m − sᵀs)/λ, lower triangle: from K_VV to M; sᵀs alone where λ is 0. Before, s [n ×
/// docs] gets its tail's rows as by apply_tail(), with one launch for both products over the head.
void dual_gram(Stream stream, const FactorTail& tail, std::int64_t docs, const double* x, double* s,
               std::int64_t stride, double lambda, double* workspace, double* m);

/// Workspace of append_pairs() and, with kBlock pairs, of close_tail(), in doubles.
std::int64_t append_workspace(std::int64_t n, std::int64_t pairs);

/// Appends up to kMostPairsPerBatch pairs of the documents that s = L⁻¹K_nV and M were computed for. The
/// new rows need only these results of the query's widths, and one pass over L⁻¹ for each block of rows
/// that they fill. `factor` and `tail` must have room for n + count rows.
void append_pairs(Stream stream, std::int64_t n, double* factor, double* tail, std::int64_t docs,
                  const double* s, std::int64_t stride, const double* m, double lambda,
                  const PreferencePair* pairs, std::int64_t count, double* workspace,
                  CovarianceStatus* status);

/// Writes the rows of L⁻¹ that a tail of kBlock rows becomes.
void close_tail(Stream stream, const FactorTail& tail, double* factor, double* workspace,
                const CovarianceStatus* status);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
