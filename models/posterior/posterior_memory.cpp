#include "models/posterior/posterior.h"

#include <algorithm>
#include <cmath>

#include "core/covariance/dictionary_policy.h"
#include "core/device/device_network.h"
#include "core/ops/blas.h"
#include "core/ops/inverse_factor.h"

namespace olrank {
namespace {

constexpr double kDoubleBytes = sizeof(double);
/// A thread's scratch memory takes this before its size depends on that of the covariance.
constexpr double kLeastScratch = 3.0 * (1 << 20);

/// Kernels split their sums into at most 528 blocks, each with a tile of the result.
constexpr double kPartialSums = 528.0 * 64.0 * 64.0;
/// A full block of rows of L takes these partial sums per row, and one more per pair.
constexpr double kInvertedSums = 528.0 * 32.0;
/// Parameters of a part of a gradient, of which each has an M.
constexpr double kPartOfGradient = 256.0;
/// The fewest documents that a primal form on a device has room for: those of a batch when it is rebuilt.
constexpr double kRebuiltDocs = 128.0;

/// Bytes of the pairs' factors.
double factor_bytes(const TangentShape& shape, double pairs) {
  return pairs * 2.0 * static_cast<double>(shape.factors()) * static_cast<double>(sizeof(float));
}

/// The numbers of n rows of L⁻¹, each as wide as its block: core/ops/inverse_factor.h.
double row_numbers(double rows) {
  constexpr auto kRows = static_cast<double>(InverseFactor::kBlock);
  const double full = std::floor(rows / kRows);
  return kRows * kRows * full * (full + 1.0) / 2.0 + (rows - full * kRows) * kRows * (full + 1.0);
}

/// Pairs of the device's batches.
constexpr double kPairsPerBatch = 256.0;

/// An array that doubles: while it moves, the old one and one of twice the size.
double doubling(double bytes) {
  return 3.0 * bytes;
}

double in_chunks(double bytes) {
  constexpr auto kChunk = static_cast<double>(kMemoryChunk);
  return std::ceil(bytes / kChunk) * kChunk;
}

double growing(PosteriorHome home, double bytes) {
  return home == PosteriorHome::kDevice ? in_chunks(bytes) : doubling(bytes);
}

}  // namespace

double dual_operations(const TangentShape& shape, std::int64_t pairs, std::int64_t docs,
                       std::int64_t new_pairs) {
  const auto n = static_cast<double>(pairs);
  const auto factors = static_cast<double>(shape.factors());
  const auto v = static_cast<double>(docs);
  const auto k = static_cast<double>(new_pairs);
  // Tangent kernels with both documents of each pair, the triangle of L⁻¹ for widths and again to invert
  // new rows, and the lower half of SᵀS.
  return 4.0 * n * factors * v + n * n * v + n * n * k + n * v * v + v * v * factors * 2.0;
}

double primal_operations(const TangentShape& shape, std::int64_t /*pairs*/, std::int64_t docs,
                         std::int64_t new_pairs) {
  const auto p = static_cast<double>(shape.parameters());
  const auto v = static_cast<double>(docs);
  const auto k = static_cast<double>(new_pairs);
  // Half of the symmetric A⁻¹ for widths, P = A⁻¹Γᵀ, and half of A⁻¹ to update.
  return p * p * v + 2.0 * p * v * v + 2.0 * p * p * k + p * p * k;
}

double conversion_operations(const TangentShape& shape, std::int64_t pairs) {
  const auto p = static_cast<double>(shape.parameters());
  // Half of ΓᵀΓ, the factor and its inverse, half of L⁻ᵀL⁻¹.
  return p * p * static_cast<double>(pairs) + p * p * p;
}

PosteriorBytes dual_bytes(const PosteriorLoad& load) {
  const auto n = static_cast<double>(load.pairs);
  const auto v = static_cast<double>(load.docs);
  const auto k = static_cast<double>(load.added);
  PosteriorBytes bytes;
  bytes.pairs = growing(load.home, factor_bytes(load.shape, n));
  if (load.home == PosteriorHome::kHost) {
    bytes.matrix = row_numbers(n) * kDoubleBytes;
    // S and K_nV, M, and the kernel of new pairs.
    bytes.workspace = (2.0 * n * v + v * v + n * k) * kDoubleBytes;
    return bytes;
  }
  constexpr auto kRows = static_cast<double>(InverseFactor::kBlock);
  // Rows of L⁻¹, and the newest ones of L.
  const double head = std::floor(n / kRows) * kRows;
  bytes.matrix = growing(load.home, row_numbers(head) * kDoubleBytes) +
                 growing(load.home, kRows * (head + kRows) * kDoubleBytes);
  const double of_widths =
      std::min(std::max(n * v * n / 512.0, (v + kRows) * v * (n / 64.0 + 1.0)), kPartialSums + v * v);
  const double appended = n + k;
  const double of_append =
      2.0 * k * k + kRows * (std::min(appended * appended / 256.0, kInvertedSums) + 2.0 * appended);
  // K_nV and S; the sums of widths and appends share their memory.
  bytes.workspace = doubling((2.0 * n * v + std::max(of_widths, of_append)) * kDoubleBytes);
  return bytes;
}

PosteriorBytes primal_bytes(const PosteriorLoad& load) {
  const auto p = static_cast<double>(load.shape.parameters());
  const auto v = static_cast<double>(load.docs);
  const auto k = static_cast<double>(load.added);
  PosteriorBytes bytes;
  bytes.matrix = p * p * kDoubleBytes;
  bytes.pairs = growing(load.home, factor_bytes(load.shape, static_cast<double>(load.pairs)));
  if (load.home == PosteriorHome::kHost) {
    // The Cholesky factor while A⁻¹ is computed; no round takes as much.
    bytes.workspace = std::max(p * p / 2.0, p * (v + k) + v * v) * kDoubleBytes;
    return bytes;
  }
  const double docs = std::max(v, kRebuiltDocs);
  // M as sums of parts: by a library of the expanded gradients, or by blocks.
  const double of_parts = std::max(p * docs + (p / kPartOfGradient + 1.0) * docs * docs,
                                   std::min(p * docs * docs, kPartialSums));
  const double of_widths = of_parts + docs * docs;
  const double batch = std::max(k, kRebuiltDocs / 2.0);
  bytes.matrix += kPairsPerBatch * p * kDoubleBytes;  // of the newest pairs
  bytes.workspace = doubling((p * docs + std::max(of_widths, 2.0 * batch * batch)) * kDoubleBytes);
  return bytes;
}

PosteriorBytes diagonal_bytes(const PosteriorLoad& load) {
  const auto p = static_cast<double>(load.shape.parameters());
  const auto v = static_cast<double>(load.docs);
  PosteriorBytes bytes;
  bytes.matrix = 2.0 * p * kDoubleBytes;
  // Scaled gradients of a query, and sums of parts.
  if (load.home != PosteriorHome::kHost)
    bytes.workspace =
        doubling((p * v + std::min(v * v * (p / 64.0 + 1.0), kPartialSums + v * v)) * kDoubleBytes);
  return bytes;
}

PosteriorBytes orthonormal_bytes(const PosteriorLoad& load) {
  const auto p = static_cast<double>(load.shape.parameters());
  const double rank = std::min(p, static_cast<double>(load.pairs));
  PosteriorBytes bytes;
  bytes.matrix = 2.0 * rank * (p + rank) * kDoubleBytes;
  bytes.pairs = growing(load.home, factor_bytes(load.shape, static_cast<double>(load.pairs)));
  return bytes;
}

PosteriorBytes inducing_bytes(const PosteriorLoad& load, std::int64_t budget) {
  const auto n = static_cast<double>(load.pairs);
  const auto v = static_cast<double>(load.docs);
  const DictionaryPolicy policy(budget);
  const double size = std::min(n, static_cast<double>(budget));
  const double window = std::min(n, static_cast<double>(policy.window() + policy.slack() + load.added));
  constexpr auto kRows = static_cast<double>(DictionaryPolicy::kRows);
  PosteriorBytes bytes;
  // C, T, what has left and R, as they were before the round; C, what has left, T, B⁻¹ and I/λ − B⁻¹ of the
  // dictionary that is chosen in it; P and a symmetric matrix in memory that the thread keeps and doubles;
  // the rows that are appended, twice, with their coordinates; and a block of rows while R is computed.
  const double side = std::ceil(size / kRows) * kRows;
  bytes.matrix =
      (12.0 * side * side + row_numbers(side) + 4.0 * kRows * (side + kRows) + kRows * side) * kDoubleBytes;
  bytes.pairs = doubling(factor_bytes(load.shape, size + window));
  // κ and Rκ, twice as both the latest and those of a frozen copy.
  const auto columns = static_cast<double>(blas::fast_columns(load.docs));
  bytes.workspace = (2.0 * (2.0 * size + kRows) * columns + v * v) * kDoubleBytes + kLeastScratch;
  return bytes;
}

}  // namespace olrank
