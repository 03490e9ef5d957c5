#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/ops/blas.h"
#include "core/ops/inverse_factor.h"

namespace olrank {
namespace {

using blas::Transpose;

constexpr std::int64_t kBlock = InverseFactor::kBlock;
constexpr std::int64_t kGramRows = 32;

/// y = x L⁻¹ with the first `n` rows of the factor.
void apply_from_right(ExecutionContext& context, const InverseFactor& factor, std::int64_t n,
                      std::int64_t rows, const double* x, double* y, std::int64_t stride) {
  context.for_blocks(n, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    // Row blocks above `begin` are zero in these columns.
    for (std::int64_t b = begin / kBlock; b * kBlock < n; ++b) {
      const std::int64_t inner = std::min(kBlock, n - b * kBlock);
      blas::gemm(Transpose::kNo, Transpose::kNo, rows, end - begin, inner, 1.0, x + b * kBlock, stride,
                 factor.block(b) + begin, InverseFactor::stride(b), b == begin / kBlock ? 0.0 : 1.0,
                 y + begin, stride);
    }
  });
}

}  // namespace

std::int64_t InverseFactor::bytes() const {
  std::int64_t numbers = 0;
  for (const auto& block : blocks_) numbers += static_cast<std::int64_t>(block.size());
  return numbers * static_cast<std::int64_t>(sizeof(double));
}

void InverseFactor::clear() {
  size_ = 0;
  blocks_.clear();
}

void InverseFactor::grow(std::int64_t size) {
  assert(size >= size_);
  while (blocks() * kBlock < size) {
    blocks_.emplace_back(static_cast<std::size_t>(kBlock * stride(blocks())), 0.0);
  }
  size_ = size;
}

void apply(ExecutionContext& context, const InverseFactor& factor, std::int64_t columns, const double* x,
           double* y, std::int64_t stride) {
  const std::int64_t n = factor.size();
  const std::int64_t blocks = factor.blocks();
  // Longest rows first, so that no thread starts the largest product when the others are done.
  context.for_blocks(blocks, 1, [&](std::int64_t task, std::int64_t, int) {
    const std::int64_t b = blocks - 1 - task;
    const std::int64_t end = std::min(n, (b + 1) * kBlock);
    blas::gemm(Transpose::kNo, Transpose::kNo, end - b * kBlock, columns, end, 1.0, factor.block(b),
               InverseFactor::stride(b), x, stride, 0.0, y + b * kBlock * stride, stride);
  });
}

void apply_from_right(ExecutionContext& context, const InverseFactor& factor, std::int64_t rows,
                      const double* x, double* y, std::int64_t stride) {
  apply_from_right(context, factor, factor.size(), rows, x, y, stride);
}

void subtract_gram(ExecutionContext& context, std::int64_t rows, std::int64_t columns, const double* x,
                   std::int64_t stride_x, double* c, std::int64_t stride_c) {
  if (rows == 0) return;
  context.for_blocks(columns, kGramRows, [&](std::int64_t begin, std::int64_t end, int) {
    blas::gemm(Transpose::kYes, Transpose::kNo, end - begin, end, rows, -1.0, x + begin, stride_x, x,
               stride_x, 1.0, c + begin * stride_c, stride_c);
  });
}

double append(ExecutionContext& context, InverseFactor& factor, std::int64_t columns, const double* cross,
              std::int64_t stride_cross, double* corner, std::int64_t stride_corner) {
  assert(columns <= factor.room());
  // With U = L⁻¹ cross and D Dᵀ = corner − UᵀU, the new rows of L⁻¹ are (−D⁻¹ Uᵀ L⁻¹, D⁻¹).
  const std::int64_t n = factor.size();
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto u = scratch.take<double>(static_cast<std::size_t>(n * stride_cross));
  apply(context, factor, columns, cross, u.data(), stride_cross);
  subtract_gram(context, n, columns, u.data(), stride_cross, corner, stride_corner);
  blas::cholesky(columns, corner, stride_corner);
  double log_det = 0.0;
  for (std::int64_t i = 0; i < columns; ++i) log_det += 2.0 * std::log(corner[i * stride_corner + i]);

  const auto inverse = scratch.take<double>(static_cast<std::size_t>(columns * columns));
  std::fill(inverse.begin(), inverse.end(), 0.0);
  for (std::int64_t i = 0; i < columns; ++i) inverse[static_cast<std::size_t>(i * columns + i)] = 1.0;
  blas::solve_lower(Transpose::kNo, columns, columns, corner, stride_corner, inverse.data(), columns);

  factor.grow(n + columns);
  const std::int64_t last = n / kBlock;
  const std::int64_t stride = InverseFactor::stride(last);
  double* rows = factor.block(last) + n % kBlock * stride;
  for (std::int64_t i = 0; i < columns; ++i) {
    std::copy_n(inverse.data() + i * columns, i + 1, rows + i * stride + n);
  }
  // Uᵀ written out: with the few rows of a round, the products below run twice as fast on it.
  const auto transposed = scratch.take<double>(static_cast<std::size_t>(n * columns));
  const auto product = scratch.take<double>(static_cast<std::size_t>(n * columns));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      transposed[static_cast<std::size_t>(j * n + i)] = u[static_cast<std::size_t>(i * stride_cross + j)];
    }
  }
  apply_from_right(context, factor, n, columns, transposed.data(), product.data(), n);
  context.for_blocks(n, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    blas::gemm(Transpose::kNo, Transpose::kNo, columns, end - begin, columns, -1.0, inverse.data(), columns,
               product.data() + begin, n, 0.0, rows + begin, stride);
  });
  return log_det;
}

}  // namespace olrank
