#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "core/ops/blas.h"
#include "core/ops/inverse_factor.h"
#include "core/runtime/vector_clones.h"

namespace olrank {
namespace {

using blas::Transpose;

constexpr std::int64_t kBlock = InverseFactor::kBlock;
constexpr std::int64_t kGramRows = 32;

// Eight numbers side by side; compilers cut them to the registers there are.
constexpr std::int64_t kLanes = 8;
using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));
constexpr std::int64_t kRowsPerPass = 4;
constexpr std::int64_t kColumnsPerPass = 4;
constexpr std::int64_t kParts = 16;  // partial sums: as many as threads can use

OLRANK_ALWAYS_INLINE void load(const double* from, Doubles& lanes) {
  std::memcpy(&lanes, from, sizeof lanes);
}

OLRANK_ALWAYS_INLINE double sum(const Doubles& x) {
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

/// kRowsPerPass rows of L⁻¹ against some columns x, `distance` numbers apart: u [rows × columns] = rows ·
/// x, product += uᵀ rows.
template <std::int64_t columns>
OLRANK_ALWAYS_INLINE void multiply_both_sides(const double* rows, std::int64_t stride, std::int64_t size,
                                              const double* x, std::int64_t distance, double* u,
                                              double* product) {
  Doubles sums[kRowsPerPass][columns] = {};
  Doubles row;
  Doubles other[columns];
  for (std::int64_t k = 0; k < size; k += kLanes) {
    for (std::int64_t j = 0; j < columns; ++j) load(x + j * distance + k, other[j]);
    for (std::int64_t r = 0; r < kRowsPerPass; ++r) {
      load(rows + r * stride + k, row);
      for (std::int64_t j = 0; j < columns; ++j) sums[r][j] += row * other[j];
    }
  }
  for (std::int64_t r = 0; r < kRowsPerPass; ++r) {
    for (std::int64_t j = 0; j < columns; ++j) u[r * columns + j] = sum(sums[r][j]);
  }
  for (std::int64_t k = 0; k < size; k += kLanes) {
    for (std::int64_t j = 0; j < columns; ++j) load(product + j * distance + k, other[j]);
    for (std::int64_t r = 0; r < kRowsPerPass; ++r) {
      load(rows + r * stride + k, row);
      for (std::int64_t j = 0; j < columns; ++j) other[j] += u[r * columns + j] * row;
    }
    for (std::int64_t j = 0; j < columns; ++j) {
      std::memcpy(product + j * distance + k, &other[j], sizeof other[j]);
    }
  }
}

OLRANK_VECTOR_CLONES
void multiply_one_column(const double* rows, std::int64_t stride, std::int64_t size, const double* x,
                         std::int64_t distance, double* u, double* product) {
  multiply_both_sides<1>(rows, stride, size, x, distance, u, product);
}

OLRANK_VECTOR_CLONES
void multiply_columns(const double* rows, std::int64_t stride, std::int64_t size, const double* x,
                      std::int64_t distance, double* u, double* product) {
  multiply_both_sides<kColumnsPerPass>(rows, stride, size, x, distance, u, product);
}

/// u [n × columns] = L⁻¹ x and product [columns × padded n] = uᵀ L⁻¹, in one pass over the factor: reading
/// it is what takes the time. Both are as long as all row blocks; what is beyond n stays zero.
void apply_from_both_sides(ExecutionContext& context, const InverseFactor& factor, std::int64_t columns,
                           const double* x, std::int64_t stride_x, double* u, double* product) {
  const std::int64_t n = factor.size();
  const std::int64_t blocks = factor.blocks();
  const std::int64_t padded = blocks * kBlock;
  Scratch& shared = context.scratch();
  const Scratch::Frame shared_frame(shared);
  const auto transposed = shared.take<double>(static_cast<std::size_t>(columns * padded));
  const std::int64_t count = std::min(blocks, kParts);
  const auto parts = shared.take<double>(static_cast<std::size_t>(count * columns * padded));
  std::fill(transposed.begin(), transposed.end(), 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      transposed[static_cast<std::size_t>(j * padded + i)] = x[i * stride_x + j];
    }
  }
  // Row blocks are dealt out in turn, so that parts are about as long as each other.
  context.for_blocks(count, 1, [&](std::int64_t number, std::int64_t, int) {
    double* part = parts.data() + number * columns * padded;
    std::fill_n(part, columns * padded, 0.0);
    for (std::int64_t b = number; b < blocks; b += count) {
      const std::int64_t stride = InverseFactor::stride(b);
      for (std::int64_t r = 0; r < kBlock; r += kRowsPerPass) {
        const std::int64_t row = b * kBlock + r;
        const std::int64_t size = (row + kRowsPerPass + kLanes - 1) / kLanes * kLanes;
        for (std::int64_t j = 0; j < columns;) {
          const std::int64_t taken = columns - j >= kColumnsPerPass ? kColumnsPerPass : 1;
          double of_rows[kRowsPerPass * kColumnsPerPass];
          (taken == 1 ? multiply_one_column : multiply_columns)(factor.block(b) + r * stride, stride, size,
                                                                transposed.data() + j * padded, padded,
                                                                of_rows, part + j * padded);
          for (std::int64_t i = 0; i < kRowsPerPass; ++i) {
            std::copy_n(of_rows + i * taken, taken, u + (row + i) * columns + j);
          }
          j += taken;
        }
      }
    }
  });
  context.for_blocks(padded, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double* out = product + j * padded;
      std::fill(out + begin, out + end, 0.0);
      for (std::int64_t number = 0; number < count; ++number) {
        const double* part = parts.data() + (number * columns + j) * padded;
        for (std::int64_t k = begin; k < end; ++k) out[k] += part[k];
      }
    }
  });
}

}  // namespace

std::int64_t InverseFactor::bytes() const {
  std::int64_t numbers = 0;
  for (const auto& block : blocks_) numbers += static_cast<std::int64_t>(block->size());
  return numbers * static_cast<std::int64_t>(sizeof(double));
}

void InverseFactor::clear() {
  size_ = 0;
  blocks_.clear();
}

void InverseFactor::grow(std::int64_t size) {
  assert(size >= size_);
  while (blocks() * kBlock < size) {
    blocks_.push_back(
        std::make_shared<AlignedVector<double>>(static_cast<std::size_t>(kBlock * stride(blocks())), 0.0));
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
  const std::int64_t n = factor.size();
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
  const std::int64_t padded = factor.blocks() * kBlock;
  const auto u = scratch.take<double>(static_cast<std::size_t>(padded * columns));
  const auto product = scratch.take<double>(static_cast<std::size_t>(padded * columns));
  apply_from_both_sides(context, factor, columns, cross, stride_cross, u.data(), product.data());
  subtract_gram(context, n, columns, u.data(), columns, corner, stride_corner);
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
  context.for_blocks(n, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    blas::gemm(Transpose::kNo, Transpose::kNo, columns, end - begin, columns, -1.0, inverse.data(), columns,
               product.data() + begin, padded, 0.0, rows + begin, stride);
  });
  return log_det;
}

}  // namespace olrank
