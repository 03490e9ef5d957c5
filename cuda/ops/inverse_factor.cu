#include "cuda/ops/inverse_factor.h"

#include <algorithm>
#include <cmath>

#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/double_tile.cuh"
#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr std::int64_t kBlock = InverseFactor::kBlock;
constexpr std::int64_t kWantedBlocks = 264;  // two per multiprocessor of a large device
constexpr int kPairsPerPass = 8;             // whose sums a thread keeps while it reads L⁻¹
constexpr unsigned kColumns = 128;           // per block of such a pass
constexpr std::int64_t kLeastRowsPerPart = 256;
constexpr int kStagedRows = 32;
constexpr int kRowsAtATime = 8;  // of L⁻¹, that a thread loads before it multiplies
static_assert(kBlock % kStagedRows == 0 && kLeastRowsPerPart % kStagedRows == 0 &&
              kColumns % kStagedRows == 0);
constexpr unsigned kFinishColumns = 32;
constexpr unsigned kThreads = 256;

/// At most 64 rows of L⁻¹ from `first` on, within one row block, as an operand.
struct FactorRowsOperand {
  const double* values;  // of row `first`
  std::int64_t stride;
  std::int64_t first;
  std::int64_t n;

  __device__ FactorRowsOperand(const double* factor, std::int64_t first_row, std::int64_t size)
      : values(factor + factor_row(first_row)),
        stride(kBlock * (first_row / kBlock + 1)),
        first(first_row),
        n(size) {}
  __device__ bool along_depth() const { return true; }
  __device__ void prepare(std::int64_t) {}

  struct Column {
    const double* values;
    int stride;
    int begin;  // where the triangle begins
    bool inside;

    __device__ double operator()(int i) const { return i >= begin ? values[place_of_row(i, stride)] : 0.0; }
  };
  __device__ int rows_within() const { return rows_of_tile(n, first); }
  __device__ Column at(std::int64_t k) const {
    return {values + k, static_cast<int>(stride),
            static_cast<int>(min(k - first, std::int64_t{DoubleTile::kSide})), true};
  }
};

/// How the sum over k of L⁻¹ x is split when there are few tiles, so that the triangle's long rows do not
/// finish last: a part is at most a quarter of a multiprocessor's work. Depends on sizes only.
struct FactorCut {
  std::int64_t depth;  // k's of a part
  std::int64_t parts;  // of the longest row

  FactorCut(std::int64_t n, std::int64_t columns) {
    constexpr std::int64_t kLeast = 256;
    const std::int64_t all = std::int64_t{double_tiles(n)} * double_tiles(columns) * n / 2;
    depth = std::max<std::int64_t>(1, parts_of(all, 2 * kWantedBlocks * kLeast)) * kLeast;
    parts = parts_of(n, depth);
  }
  /// Workspace offset of part `number` > 0; part 0 is y itself.
  OLRANK_HOST_DEVICE std::int64_t numbers_before(std::int64_t number, std::int64_t n,
                                                 std::int64_t columns) const {
    // Part i has the rows from i · depth on.
    return ((number - 1) * n - depth * (number * (number - 1) / 2)) * columns;
  }
};

// A part of y = L⁻¹ x: the first in y, the others in the workspace. Grid: tiles of columns, tiles of rows,
// the longest first, parts. A block owns a tile [64 × 64], its k's in order. Double; deterministic.
__device__ void apply_factor_kernel(const Grid& grid, std::int64_t n, const double* factor,
                                    std::int64_t columns, const double* x, double* y, std::int64_t stride,
                                    const FactorCut& cut, double* workspace) {
  const std::int64_t row = std::int64_t{grid.extent.y - 1 - grid.block.y} * DoubleTile::kSide;
  const std::int64_t column = std::int64_t{grid.block.x} * DoubleTile::kSide;
  const std::int64_t part = grid.block.z;
  const std::int64_t begin = part * cut.depth;
  const std::int64_t end = min(min(n, row + DoubleTile::kSide), begin + cut.depth);
  if (begin >= end) return;
  FactorRowsOperand a(factor, row, n);
  DoubleOperand<false> b{x, stride, columns, end, column};
  DoubleTile tile;
  multiply_tile(begin, end, a, b, dynamic_shared<double>(), tile);
  // Rows are counted from the part's first.
  double* out = part == 0 ? y : workspace + cut.numbers_before(part, n, columns) - begin * columns;
  const std::int64_t out_stride = part == 0 ? stride : columns;
  tile.for_each([&](int i, int j, double sum) {
    if (row + i < n && column + j < columns) out[(row + i) * out_stride + column + j] = sum;
  });
}

// Adds the other parts to y, in order. A thread owns a number of a row that has several parts.
__device__ void add_factor_parts_kernel(const Grid& grid, std::int64_t n, std::int64_t columns, double* y,
                                        std::int64_t stride, const FactorCut& cut,
                                        const double* workspace) {
  const std::int64_t at = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  const std::int64_t row = cut.depth + at / columns;
  if (row >= n) return;
  double& number = y[row * stride + at % columns];
  double sum = number;
  // A part contains all rows of a tile or none.
  const std::int64_t parts = row / cut.depth + 1;
  for (std::int64_t part = 1; part < parts; ++part) {
    sum +=
        workspace[cut.numbers_before(part, n, columns) + (row - part * cut.depth) * columns + at % columns];
  }
  number = sum;
}

std::int64_t gram_rows_per_part(std::int64_t n, std::int64_t docs) {
  const std::int64_t wanted = std::max<std::int64_t>(1, kWantedBlocks / lower_tiles(docs));
  return std::max<std::int64_t>(64, parts_of(parts_of(n, wanted), DoubleTile::kDepth) * DoubleTile::kDepth);
}

// parts [parts × docs × docs]: sᵀs over a part of the rows, tiles of the lower triangle. Grid: tiles,
// parts.
__device__ void gram_part_kernel(const Grid& grid, std::int64_t n, std::int64_t docs, const double* s,
                                 std::int64_t stride, std::int64_t rows_per_part, double* parts) {
  std::int64_t row = 0;
  std::int64_t column = 0;
  lower_tile(grid.block.x, row, column);
  const std::int64_t begin = std::int64_t{grid.block.y} * rows_per_part;
  const std::int64_t end = min(n, begin + rows_per_part);
  DoubleOperand<false> a{s, stride, docs, end, row};
  DoubleTile tile;
  if (row == column) {
    multiply_by_itself(begin, end, a, dynamic_shared<double>(), tile);
  } else {
    DoubleOperand<false> b{s, stride, docs, end, column};
    multiply_tile(begin, end, a, b, dynamic_shared<double>(), tile);
  }
  double* out = parts + std::int64_t{grid.block.y} * docs * docs;
  tile.for_each([&](int i, int j, double sum) {
    if (row + i < docs && column + j <= row + i) out[(row + i) * docs + column + j] = sum;
  });
}

// A thread owns a number of M and subtracts the parts in order.
__device__ void finish_gram_kernel(const Grid& grid, std::int64_t docs, std::int64_t parts,
                                   const double* numbers, double lambda, double* m) {
  const std::int64_t column = std::int64_t{grid.block.x} * blockDim.x + threadIdx.x;
  const std::int64_t row = grid.block.y;
  if (column > row) return;
  const std::int64_t at = row * docs + column;
  double sum = 0.0;
#pragma unroll 8
  for (std::int64_t part = 0; part < parts; ++part) sum += numbers[part * docs * docs + at];
  m[at] = (m[at] - sum) / lambda;
}

/// The workspace of an append.
struct AppendParts {
  double* u;         // [n × count], L⁻¹ of the new pairs' column
  double* corner;    // [count × count], D of I + ΔMΔᵀ; the new rows' diagonal block is √λ D
  double* inverse;   // [count × count], D⁻¹
  double* products;  // [parts × count × n], uᵀL⁻¹ by parts of the rows
};

// u = s(winner) − s(loser). A thread owns a number.
__device__ void pair_columns_kernel(const Grid& grid, std::int64_t n, const double* s, std::int64_t stride,
                                    const PreferencePair* pairs, std::int64_t count, double* u) {
  const std::int64_t at = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (at >= n * count) return;
  const PreferencePair& pair = pairs[at % count];
  const double* row = s + at / count * stride;
  u[at] = row[pair.winner] - row[pair.loser];
}

// products = uᵀ L⁻¹, the rows cut into parts. Grid: blocks of columns, parts, groups of pairs. A thread
// owns a column of the group's pairs and reads L⁻¹ down it, in order; 32 rows of u at a time lie in shared
// memory.
__device__ void apply_from_right_kernel(const Grid& grid, std::int64_t n, const double* factor,
                                        std::int64_t count, std::int64_t rows_per_part,
                                        const AppendParts& work) {
  const std::int64_t column = std::int64_t{grid.block.x} * kColumns + threadIdx.x;
  const std::int64_t begin =
      max(std::int64_t{grid.block.y} * rows_per_part, std::int64_t{grid.block.x} * kColumns);
  const std::int64_t end = min(n, std::int64_t{grid.block.y} * rows_per_part + rows_per_part);
  const std::int64_t first_pair = std::int64_t{grid.block.z} * kPairsPerPass;
  auto* staged = dynamic_shared<double>();
  double sums[kPairsPerPass] = {};
  for (std::int64_t row = begin; row < end; row += kStagedRows) {
    const int rows = static_cast<int>(min(std::int64_t{kStagedRows}, end - row));
    __syncthreads();
    for (int at = static_cast<int>(threadIdx.x); at < kStagedRows * kPairsPerPass; at += kColumns) {
      const int i = at / kPairsPerPass;
      const std::int64_t pair = first_pair + at % kPairsPerPass;
      staged[at] = i < rows && pair < count ? work.u[(row + i) * count + pair] : 0.0;
    }
    __syncthreads();
    // The staged rows lie in one row block. Loads that nothing decides all start before the first product
    // needs one, so a number outside the triangle reads one inside.
    const double* block = factor + factor_row(row);
    const std::int64_t stride = kBlock * (row / kBlock + 1);
    for (int i = 0; i < rows; i += kRowsAtATime) {
      double value[kRowsAtATime];
#pragma unroll
      for (int e = 0; e < kRowsAtATime; ++e) {
        const int near = min(i + e, rows - 1);
        value[e] = block[near * stride + min(column, row + near)];
      }
      __syncwarp();  // all loads start before the first number is needed
#pragma unroll
      for (int e = 0; e < kRowsAtATime; ++e) {
        if (i + e >= rows || column > row + i + e) value[e] = 0.0;
      }
#pragma unroll
      for (int e = 0; e < kRowsAtATime; ++e) {
#pragma unroll
        for (int pair = 0; pair < kPairsPerPass; ++pair)
          sums[pair] += staged[(i + e) * kPairsPerPass + pair] * value[e];
      }
    }
  }
  if (column >= n) return;
  for (int pair = 0; pair < kPairsPerPass && first_pair + pair < count; ++pair) {
    work.products[(grid.block.y * count + first_pair + pair) * n + column] = sums[pair];
  }
}

// Writes the new rows (−D⁻¹uᵀL⁻¹, D⁻¹)/√λ. A block owns 32 columns: it adds the parts of uᵀL⁻¹ in order
// into shared memory, then its threads take the rows. Writes nothing if the corner was indefinite.
__device__ void write_rows_kernel(const Grid& grid, std::int64_t n, double* factor, std::int64_t count,
                                  std::int64_t parts, double root_lambda, const AppendParts& work,
                                  const CovarianceStatus* status) {
  if (status->failed != 0) return;
  auto* product = dynamic_shared<double>();
  const std::int64_t column = std::int64_t{grid.block.x} * kFinishColumns + threadIdx.x % kFinishColumns;
  const std::int64_t lane = threadIdx.x / kFinishColumns;
  constexpr std::int64_t kLanes = kThreads / kFinishColumns;
  for (std::int64_t pair = lane; pair < count; pair += kLanes) {
    double sum = 0.0;
    for (std::int64_t part = 0; part < parts && column < n; ++part) {
      sum += work.products[(part * count + pair) * n + column];
    }
    product[pair * kFinishColumns + threadIdx.x % kFinishColumns] = sum;
  }
  __syncthreads();
  for (std::int64_t i = lane; i < count; i += kLanes) {
    const std::int64_t row = n + i;
    if (column > row) continue;
    double value = 0.0;
    if (column >= n) {
      value = work.inverse[i * count + column - n];
    } else {
      for (std::int64_t j = 0; j <= i; ++j) {
        value -= work.inverse[i * count + j] * product[j * kFinishColumns + threadIdx.x % kFinishColumns];
      }
    }
    factor[factor_row(row) + column] = value / root_lambda;
  }
}

std::int64_t append_rows_per_part(std::int64_t n) {
  const std::int64_t wanted =
      std::max<std::int64_t>(1, 4 * kWantedBlocks / std::max<std::int64_t>(1, n / kColumns));
  return std::max(kLeastRowsPerPart, parts_of(parts_of(n, wanted), kStagedRows) * kStagedRows);
}

/// work.products = work.uᵀ L⁻¹ by parts of the rows; returns how many.
std::int64_t apply_from_right(Stream stream, std::int64_t n, const double* factor, std::int64_t count,
                              const AppendParts& work) {
  const std::int64_t rows_per_part = append_rows_per_part(n);
  const std::int64_t parts = parts_of(n, rows_per_part);
  launch(kernel<apply_from_right_kernel, kColumns>,
         dim3{count_of(parts_of(n, kColumns)), count_of(parts), count_of(parts_of(count, kPairsPerPass))},
         dim3{kColumns}, kStagedRows * kPairsPerPass * sizeof(double), stream, n, factor, count,
         rows_per_part, work);
  return parts;
}

}  // namespace

std::int64_t apply_factor_workspace(std::int64_t n, std::int64_t columns) {
  if (n == 0 || columns == 0) return 0;
  const FactorCut cut(n, columns);
  return cut.numbers_before(cut.parts, n, columns);
}

void apply_factor(Stream stream, std::int64_t n, const double* factor, std::int64_t columns,
                  const double* x, double* workspace, double* y, std::int64_t stride) {
  if (n == 0 || columns == 0) return;
  const FactorCut cut(n, columns);
  launch(kernel<apply_factor_kernel, DoubleTile::kThreads>,
         dim3{double_tiles(columns), double_tiles(n), count_of(cut.parts)}, dim3{DoubleTile::kThreads},
         DoubleTile::kSharedBytes, stream, n, factor, columns, x, y, stride, cut, workspace);
  if (cut.parts == 1) return;
  launch_each<kThreads>(kernel<add_factor_parts_kernel, kThreads>, (n - cut.depth) * columns, 1, stream, n,
                        columns, y, stride, cut, workspace);
}

std::int64_t apply_factor_transposed_workspace(std::int64_t n, std::int64_t columns) {
  return parts_of(n, append_rows_per_part(n)) * columns * n;
}

void apply_factor_transposed(Stream stream, std::int64_t n, const double* factor, std::int64_t columns,
                             const double* x, double* workspace, double* y) {
  if (n == 0 || columns == 0) return;
  const AppendParts work{const_cast<double*>(x), nullptr, nullptr, workspace};
  add_parts(stream, columns * n, 1, apply_from_right(stream, n, factor, columns, work), workspace, y);
}

std::int64_t dual_gram_workspace(std::int64_t n, std::int64_t docs) {
  return docs == 0 ? 0 : parts_of(n, gram_rows_per_part(n, docs)) * docs * docs;
}

void dual_gram(Stream stream, std::int64_t n, std::int64_t docs, const double* s, std::int64_t stride,
               double lambda, double* workspace, double* m) {
  if (docs == 0) return;
  const std::int64_t rows_per_part = gram_rows_per_part(n, docs);
  const std::int64_t parts = parts_of(n, rows_per_part);
  if (parts > 0) {
    launch(kernel<gram_part_kernel, DoubleTile::kThreads>,
           dim3{count_of(lower_tiles(docs)), count_of(parts)}, dim3{DoubleTile::kThreads},
           DoubleTile::kSharedBytes, stream, n, docs, s, stride, rows_per_part, workspace);
  }
  launch_each<128>(kernel<finish_gram_kernel>, docs, docs, stream, docs, parts, workspace, lambda, m);
}

std::int64_t append_workspace(std::int64_t n, std::int64_t pairs) {
  return n * pairs + 2 * pairs * pairs + parts_of(n, append_rows_per_part(n)) * pairs * n;
}

void append_pairs(Stream stream, std::int64_t n, double* factor, std::int64_t docs, const double* s,
                  std::int64_t stride, const double* m, double lambda, const PreferencePair* pairs,
                  std::int64_t count, double* workspace, CovarianceStatus* status) {
  if (count == 0) return;
  AppendParts work;
  work.u = workspace;
  work.corner = work.u + n * count;
  work.inverse = work.corner + count * count;
  work.products = work.inverse + count * count;
  factor_pair_corner(stream, docs, m, pairs, count, work.corner, work.inverse, status);
  std::int64_t parts = 0;
  if (n > 0) {
    launch_each<kThreads>(kernel<pair_columns_kernel, kThreads>, n * count, 1, stream, n, s, stride, pairs,
                          count, work.u);
    parts = apply_from_right(stream, n, factor, count, work);
  }
  launch(kernel<write_rows_kernel, kThreads>, dim3{count_of(parts_of(n + count, kFinishColumns))},
         dim3{kThreads}, static_cast<std::size_t>(count) * kFinishColumns * sizeof(double), stream, n,
         factor, count, parts, std::sqrt(lambda), work, status);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
