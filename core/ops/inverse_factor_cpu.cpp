#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/math/any_cpu.h"
#include "core/ops/blas.h"
#include "core/ops/inverse_factor.h"

namespace olrank {
namespace {

using blas::Transpose;

constexpr std::int64_t kBlock = InverseFactor::kBlock;
constexpr std::int64_t kGramRows = 32;

// Columns per task of the triangular solve by the open rows.
constexpr std::int64_t kColumnsPerTask = 64;

// Columns of y = x L⁻¹ per task: wide enough for the BLAS to run at full rate.
constexpr std::int64_t kColumnsFromRight = 512;

/// y [rows × inverted] = x L⁻¹ by the inverted rows only.
void multiply_inverted_from_right(ExecutionContext& context, const InverseFactor& factor, std::int64_t rows,
                                  const double* x, std::int64_t stride_x, double* y,
                                  std::int64_t stride_y) {
  const std::int64_t n = factor.inverted();
  context.for_blocks(n, kColumnsFromRight, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = 0; i < rows; ++i)
      std::fill(y + i * stride_y + begin, y + i * stride_y + end, 0.0);
    // Row blocks above `begin` are zero in these columns.
    for (std::int64_t b = begin / kBlock; b * kBlock < n; ++b) {
      const std::int64_t inner = std::min(kBlock, n - b * kBlock);
      const std::int64_t columns = std::min(end, InverseFactor::stride(b)) - begin;
      blas::gemm(Transpose::kNo, Transpose::kNo, rows, columns, inner, 1.0, x + b * kBlock, stride_x,
                 factor.block(b) + begin, InverseFactor::stride(b), 1.0, y + begin, stride_y);
    }
  });
}

}  // namespace

std::int64_t InverseFactor::bytes() const {
  std::int64_t numbers = 0;
  for (std::int64_t b = 0; b < blocks(); ++b) numbers += std::min(kBlock, size_ - b * kBlock) * stride(b);
  return numbers * static_cast<std::int64_t>(sizeof(double));
}

void InverseFactor::clear() {
  size_ = 0;
  inverted_ = 0;
  blocks_.clear();
}

void InverseFactor::grow(std::int64_t size) {
  while (size_ < size) add_row();
  inverted_ = size / kBlock * kBlock;
}

double* InverseFactor::add_row() {
  assert(inverted_ % kBlock == 0);
  if (room() == kBlock)
    blocks_.push_back(
        std::make_shared<AlignedVector<double>>(static_cast<std::size_t>(kBlock * stride(blocks())), 0.0));
  const std::int64_t last = blocks() - 1;
  return block(last) + size_++ % kBlock * stride(last);
}

void InverseFactor::set_inverted(std::shared_ptr<AlignedVector<double>> last_block) {
  blocks_.back() = std::move(last_block);
  inverted_ = size_;
}

void apply(ExecutionContext& context, const InverseFactor& factor, std::int64_t columns, const double* x,
           double* y, std::int64_t stride) {
  const std::int64_t n = factor.inverted();
  const std::int64_t blocks = (n + kBlock - 1) / kBlock;
  // Longest rows first, so that no thread starts the largest product last.
  context.for_blocks(blocks, 1, [&](std::int64_t task, std::int64_t, int) {
    const std::int64_t b = blocks - 1 - task;
    const std::int64_t end = std::min(n, (b + 1) * kBlock);
    blas::gemm(Transpose::kNo, Transpose::kNo, end - b * kBlock, columns, end, 1.0, factor.block(b),
               InverseFactor::stride(b), x, stride, 0.0, y + b * kBlock * stride, stride);
  });
  const std::int64_t rows = factor.size() - n;
  if (rows == 0) return;
  // Forward substitution: D⁻¹ (x − C y) by the open rows (C, D) of L.
  const std::int64_t last = factor.blocks() - 1;
  const double* open = factor.block(last);
  const std::int64_t stride_open = InverseFactor::stride(last);
  context.for_blocks(columns, kColumnsPerTask, [&](std::int64_t begin, std::int64_t end, int) {
    double* out = y + n * stride + begin;
    for (std::int64_t i = 0; i < rows; ++i)
      std::copy_n(x + (n + i) * stride + begin, end - begin, out + i * stride);
    blas::gemm(Transpose::kNo, Transpose::kNo, rows, end - begin, n, -1.0, open, stride_open, y + begin,
               stride, 1.0, out, stride);
    blas::solve_lower(Transpose::kNo, rows, end - begin, open + n, stride_open, out, stride);
  });
}

void apply_from_right(ExecutionContext& context, const InverseFactor& factor, std::int64_t rows,
                      const double* x, double* y, std::int64_t stride) {
  const std::int64_t n = factor.inverted();
  const std::int64_t open_rows = factor.size() - n;
  if (open_rows == 0) {
    multiply_inverted_from_right(context, factor, rows, x, stride, y, stride);
    return;
  }
  // With the open rows (C, D) of L: the result is (x₀ − z C) L₀⁻¹, then z = x₁ D⁻¹.
  const std::int64_t last = factor.blocks() - 1;
  const double* open = factor.block(last);
  const std::int64_t stride_open = InverseFactor::stride(last);
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto z = scratch.take<double>(open_rows * rows);
  const auto left = scratch.take<double>(rows * n);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < open_rows; ++j) z[j * rows + i] = x[i * stride + n + j];
    std::copy_n(x + i * stride, n, left.data() + i * n);
  }
  blas::solve_lower(Transpose::kYes, open_rows, rows, open + n, stride_open, z.data(), rows);
  blas::gemm(Transpose::kYes, Transpose::kNo, rows, n, open_rows, -1.0, z.data(), rows, open, stride_open,
             1.0, left.data(), n);
  multiply_inverted_from_right(context, factor, rows, left.data(), n, y, stride);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < open_rows; ++j) y[i * stride + n + j] = z[j * rows + i];
  }
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
  const std::int64_t n = factor.size();
  Scratch& scratch = context.scratch();
  const Scratch::Frame frame(scratch);
  const auto u = scratch.take<double>(n * stride_cross);
  apply(context, factor, columns, cross, u.data(), stride_cross);
  subtract_gram(context, n, columns, u.data(), stride_cross, corner, stride_corner);
  return append_solved(context, factor, columns, u.data(), stride_cross, corner, stride_corner);
}

double append_solved(ExecutionContext& context, InverseFactor& factor, std::int64_t columns,
                     const double* u, std::int64_t stride_u, double* corner, std::int64_t stride_corner) {
  // With D Dᵀ the corner, the new rows of L are (uᵀ, D).
  const std::int64_t n = factor.size();
  blas::cholesky(columns, corner, stride_corner);
  for (std::int64_t row = 0; row < columns; ++row) {
    if (!std::isfinite(corner[row * (stride_corner + 1)]))
      throw NumericError("A matrix to factorise has entries that are not finite.");
  }
  double log_det = 0.0;
  for (std::int64_t row = 0; row < columns; ++row) {
    double* out = factor.add_row();
    for (std::int64_t i = 0; i < n; ++i) out[i] = u[i * stride_u + row];
    std::copy_n(corner + row * stride_corner, row + 1, out + n);
    log_det += 2.0 * log_of(out[n + row]);
    if (factor.room() == kBlock) invert_open_rows(context, factor);
  }
  return log_det;
}

void invert_open_rows(ExecutionContext& context, InverseFactor& factor) {
  const std::int64_t n = factor.inverted();
  const std::int64_t rows = factor.size() - n;
  if (rows == 0) return;
  // Rows (C, D) of L below L₀, which is already inverted, become (−D⁻¹ C L₀⁻¹, D⁻¹).
  const std::int64_t last = n / kBlock;
  const std::int64_t stride = InverseFactor::stride(last);
  const double* open = factor.block(last);
  auto inverse = std::make_shared<AlignedVector<double>>(static_cast<std::size_t>(kBlock * stride), 0.0);
  double* out = inverse->data();
  multiply_inverted_from_right(context, factor, rows, open, stride, out, stride);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < n; ++j) out[i * stride + j] = -out[i * stride + j];
    out[i * stride + n + i] = 1.0;
  }
  context.for_blocks(n + rows, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    blas::solve_lower(Transpose::kNo, rows, end - begin, open + n, stride, out + begin, stride);
  });
  factor.set_inverted(std::move(inverse));
}

}  // namespace olrank
