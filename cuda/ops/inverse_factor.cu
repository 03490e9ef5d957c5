#include "cuda/ops/inverse_factor.h"

#include <algorithm>
#include <cmath>

#include "cuda/ops/block_sum.cuh"
#include "cuda/ops/double_tile.cuh"
#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

constexpr std::int64_t kBlock = InverseFactor::kBlock;
constexpr std::int64_t kLeastRowsPerPart = 256;
constexpr unsigned kFinishColumns = 32;
constexpr unsigned kTailColumns = 4;
constexpr std::int64_t kColumnsPerPass = 8;  // whose sums a thread keeps while it reads rows of L
static_assert(kBlock % DoubleTile::kDepth == 0 && kBlock % kFinishColumns == 0);

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

/// Tiles of U s, U the tail's rows of L left of its diagonal block.
std::int64_t tail_tiles(const FactorTail& tail, std::int64_t columns) {
  return tail.head == 0 ? 0 : std::int64_t{double_tiles(tail.rows)} * double_tiles(columns);
}

/// How sᵀs and U s are split over the head's rows. Depends on sizes only.
struct HeadCut {
  std::int64_t gram_tiles;
  std::int64_t all_tiles;
  std::int64_t rows;  // of a part
  std::int64_t parts;

  HeadCut(const FactorTail& tail, std::int64_t columns, bool with_gram)
      : gram_tiles(with_gram ? lower_tiles(columns) : 0),
        all_tiles(gram_tiles + tail_tiles(tail, columns)) {
    const std::int64_t wanted =
        std::max<std::int64_t>(1, kWantedBlocks / std::max<std::int64_t>(1, all_tiles));
    rows = std::max<std::int64_t>(
        64, parts_of(parts_of(tail.head, wanted), DoubleTile::kDepth) * DoubleTile::kDepth);
    parts = all_tiles == 0 ? 0 : parts_of(tail.head, rows);
  }
  std::int64_t gram_numbers(std::int64_t columns) const {
    return gram_tiles == 0 ? 0 : parts * columns * columns;
  }
};

// gram [parts × columns × columns]: sᵀs over a part of the head's rows, tiles of the lower triangle, then
// products [parts × tail × columns]: U s over the same, all tiles. Grid: tiles of both, parts.
__device__ void head_products_kernel(const Grid& grid, const FactorTail& tail, std::int64_t columns,
                                     const double* s, std::int64_t stride, const HeadCut& cut, double* gram,
                                     double* products) {
  std::int64_t row = 0;
  std::int64_t column = 0;
  const std::int64_t begin = std::int64_t{grid.block.y} * cut.rows;
  const std::int64_t end = min(tail.head, begin + cut.rows);
  DoubleTile tile;
  if (grid.block.x >= cut.gram_tiles) {
    const std::int64_t number = grid.block.x - cut.gram_tiles;
    const std::int64_t across = parts_of(columns, DoubleTile::kSide);
    row = number / across * DoubleTile::kSide;
    column = number % across * DoubleTile::kSide;
    DoubleOperand<true> a{tail.values, tail.stride(), tail.rows, end, row};
    DoubleOperand<false> b{s, stride, columns, end, column};
    multiply_tile(begin, end, a, b, dynamic_shared<double>(), tile);
    double* out = products + grid.block.y * tail.rows * columns;
    tile.for_each([&](int i, int j, double sum) {
      if (row + i < tail.rows && column + j < columns) out[(row + i) * columns + column + j] = sum;
    });
    return;
  }
  lower_tile(grid.block.x, row, column);
  DoubleOperand<false> a{s, stride, columns, end, row};
  if (row == column) {
    multiply_by_itself(begin, end, a, dynamic_shared<double>(), tile);
  } else {
    DoubleOperand<false> b{s, stride, columns, end, column};
    multiply_tile(begin, end, a, b, dynamic_shared<double>(), tile);
  }
  double* out = gram + grid.block.y * columns * columns;
  tile.for_each([&](int i, int j, double sum) {
    if (row + i < columns && column + j <= row + i) out[(row + i) * columns + column + j] = sum;
  });
}

// The tail's rows of s = T (x − U s), T the inverse of its diagonal block. A block owns four columns: its
// threads add the parts of U s in order into shared memory, then take the rows.
__device__ void finish_tail_kernel(const Grid& grid, const FactorTail& tail, std::int64_t columns,
                                   const double* x, std::int64_t parts, const double* products, double* s,
                                   std::int64_t stride) {
  auto* rest = dynamic_shared<double>();  // [tail × 4]
  const std::int64_t near = threadIdx.x % kTailColumns;
  const std::int64_t column = std::int64_t{grid.block.x} * kTailColumns + near;
  const std::int64_t lane = threadIdx.x / kTailColumns;
  constexpr std::int64_t kLanes = kThreads / kTailColumns;
  for (std::int64_t i = lane; i < tail.rows && column < columns; i += kLanes) {
    double sum = 0.0;
#pragma unroll 8
    for (std::int64_t part = 0; part < parts; ++part)
      sum += products[(part * tail.rows + i) * columns + column];
    rest[i * kTailColumns + near] = x[(tail.head + i) * stride + column] - sum;
  }
  __syncthreads();
  if (column >= columns) return;
  for (std::int64_t i = lane; i < tail.rows; i += kLanes) {
    const double* t = tail.inverse_row(i);
    double sum = 0.0;
#pragma unroll 8
    for (std::int64_t j = 0; j <= i; ++j) sum += t[j] * rest[j * kTailColumns + near];
    s[(tail.head + i) * stride + column] = sum;
  }
}

// A thread owns a number of M: it subtracts the parts in order, then the products of the tail's rows of s.
__device__ void finish_gram_kernel(const Grid& grid, std::int64_t docs, std::int64_t parts,
                                   const double* numbers, std::int64_t tail_rows, const double* s,
                                   std::int64_t stride, double lambda, double* m) {
  const std::int64_t column = std::int64_t{grid.block.x} * blockDim.x + threadIdx.x;
  const std::int64_t row = grid.block.y;
  if (column > row) return;
  const std::int64_t at = row * docs + column;
  double sum = 0.0;
#pragma unroll 8
  for (std::int64_t part = 0; part < parts; ++part) sum += numbers[part * docs * docs + at];
#pragma unroll 8
  for (std::int64_t i = 0; i < tail_rows; ++i) sum += s[i * stride + row] * s[i * stride + column];
  m[at] = lambda == 0.0 ? sum : (m[at] - sum) / lambda;
}

/// Pairs of a batch whose rows go into one row block.
struct NewRows {
  const PreferencePair* pairs;  // of the whole batch
  std::int64_t batch;
  const double* corner;   // [batch × batch], D of I + ΔMΔᵀ; L's diagonal block is √λ D
  const double* inverse;  // [batch × batch], D⁻¹
  std::int64_t first;
  std::int64_t count;
};

// Appends rows of L to the tail, which follows n rows before the batch: u = s(winner) − s(loser) and √λ D
// left of the diagonal block, and (−D⁻¹ C T, D⁻¹)/√λ there, C being u in the block's columns. A block owns
// 32 columns. Writes nothing if the corner was indefinite.
__device__ void append_rows_kernel(const Grid& grid, std::int64_t n, const FactorTail& tail,
                                   const double* s, std::int64_t stride, const NewRows& rows,
                                   double root_lambda, const CovarianceStatus* status) {
  if (status->failed != 0) return;
  auto* products = dynamic_shared<double>();  // C T
  const std::int64_t near = threadIdx.x % kFinishColumns;
  const std::int64_t column = std::int64_t{grid.block.x} * kFinishColumns + near;
  const std::int64_t lane = threadIdx.x / kFinishColumns;
  constexpr std::int64_t kLanes = kThreads / kFinishColumns;
  const auto number_of_l = [&](std::int64_t pair, std::int64_t at) {
    if (at >= n) return root_lambda * rows.corner[pair * rows.batch + at - n];
    return s[at * stride + rows.pairs[pair].winner] - s[at * stride + rows.pairs[pair].loser];
  };
  double* out = tail.values + tail.rows * tail.stride() + column;
  if (column < tail.head) {
    for (std::int64_t i = lane; i < rows.count; i += kLanes)
      out[i * tail.stride()] = number_of_l(rows.first + i, column);
    return;
  }
  const std::int64_t k = column - tail.head;
  for (std::int64_t i = lane; i < rows.count && k < tail.rows; i += kLanes) {
    double sum = 0.0;
#pragma unroll 4
    for (std::int64_t j = k; j < tail.rows; ++j)
      sum += number_of_l(rows.first + i, tail.head + j) * tail.inverse_row(j)[k];
    products[i * kFinishColumns + near] = sum;
  }
  __syncthreads();
  for (std::int64_t i = lane; i < rows.count; i += kLanes) {
    const double* d = rows.inverse + (rows.first + i) * rows.batch + rows.first;
    double value = 0.0;
    if (k < tail.rows) {
      for (std::int64_t j = 0; j <= i; ++j) value -= d[j] * products[j * kFinishColumns + near];
    } else if (k - tail.rows <= i) {
      value = d[k - tail.rows];
    }
    out[i * tail.stride()] = value / root_lambda;
  }
}

/// At most 64 columns of L⁻¹ from `first` on as an operand, whose k is the row.
struct FactorColumnsOperand {
  const double* factor;
  std::int64_t first;
  std::int64_t n;
  const double* row = nullptr;  // of the rows that are prepared, which lie in one row block
  std::int64_t stride = 0;
  std::int64_t prepared = 0;

  __device__ bool along_depth() const { return false; }
  __device__ void prepare(std::int64_t k) {
    row = factor + factor_row(k) + first;
    stride = kBlock * (k / kBlock + 1);
    prepared = k;
  }
  __device__ int rows_within() const { return rows_of_tile(n, first); }

  struct Column {
    const double* values;
    std::int64_t end;  // of the triangle
    bool inside;

    __device__ double operator()(int i) const { return i < end ? values[i] : 0.0; }
  };
  __device__ Column at(std::int64_t k) const {
    return {row + (k - prepared) * stride, k - first + 1, k < n};
  }
};

/// How the sum over the rows of L⁻¹ in x L⁻¹ is split. Depends on sizes only.
struct RowCut {
  std::int64_t depth;  // rows of a part
  std::int64_t parts;

  RowCut(std::int64_t n, std::int64_t rows) {
    const std::int64_t tiles = std::int64_t{double_tiles(n)} * double_tiles(rows);
    const std::int64_t wanted = parts_of(2 * kWantedBlocks, std::max<std::int64_t>(1, tiles));
    depth = std::max(kLeastRowsPerPart, parts_of(parts_of(n, wanted), kBlock) * kBlock);
    parts = parts_of(n, depth);
  }
};

// products [rows × parts × n]: x [rows × n] times a part of L⁻¹'s rows. Grid: tiles of columns, the longest
// first, parts, tiles of rows. A block owns a tile [64 × 64], its k's in order. Double; deterministic.
__device__ void apply_from_right_kernel(const Grid& grid, std::int64_t n, const double* factor,
                                        std::int64_t rows, const double* x, std::int64_t stride,
                                        const RowCut& cut, double* products) {
  const std::int64_t column = std::int64_t{grid.block.x} * DoubleTile::kSide;
  const std::int64_t row = std::int64_t{grid.block.z} * DoubleTile::kSide;
  const std::int64_t end = min(n, (std::int64_t{grid.block.y} + 1) * cut.depth);
  DoubleOperand<true> a{x, stride, rows, end, row};
  FactorColumnsOperand b{factor, column, n};
  DoubleTile tile;
  multiply_tile(max(std::int64_t{grid.block.y} * cut.depth, column), end, a, b, dynamic_shared<double>(),
                tile);
  tile.for_each([&](int i, int j, double sum) {
    if (row + i < rows && column + j < n)
      products[((row + i) * cut.parts + grid.block.y) * n + column + j] = sum;
  });
}

// The rows (−T U L⁻¹, T) of L⁻¹ that a full tail becomes. A block owns 32 columns: it adds the parts of
// U L⁻¹ in order into shared memory, then its threads take the rows. Writes nothing for an indefinite
// corner.
__device__ void close_tail_kernel(const Grid& grid, const FactorTail& tail, const double* product,
                                  double* rows, const CovarianceStatus* status) {
  if (status->failed != 0) return;
  auto* staged = dynamic_shared<double>();
  const std::int64_t near = threadIdx.x % kFinishColumns;
  const std::int64_t column = std::int64_t{grid.block.x} * kFinishColumns + near;
  const std::int64_t lane = threadIdx.x / kFinishColumns;
  constexpr std::int64_t kLanes = kThreads / kFinishColumns;
  for (std::int64_t i = lane; i < tail.rows && column < tail.head; i += kLanes)
    staged[i * kFinishColumns + near] = product[i * tail.head + column];
  __syncthreads();
  for (std::int64_t i = lane; i < tail.rows; i += kLanes) {
    const double* t = tail.inverse_row(i);
    double value = 0.0;
    if (column >= tail.head) {
      value = t[column - tail.head];
    } else {
#pragma unroll 8
      for (std::int64_t j = 0; j <= i; ++j) value -= t[j] * staged[j * kFinishColumns + near];
    }
    rows[i * tail.stride() + column] = value;
  }
}

// The tail's rows of L⁻ᵀx, Tᵀ x, go to y [columns × n], and rest [columns × head] = x − Uᵀ(Tᵀ x) is left to
// L⁻¹. Grid: 256 rows of the head a block, groups of columns; a thread owns a row and a group's sums.
__device__ void tail_from_right_kernel(const Grid& grid, const FactorTail& tail, std::int64_t columns,
                                       const double* x, double* rest, double* y) {
  auto* own = dynamic_shared<double>();  // [tail × 8]
  const std::int64_t first = std::int64_t{grid.block.y} * kColumnsPerPass;
  const std::int64_t taken = min(columns - first, kColumnsPerPass);
  for (std::int64_t at = threadIdx.x; at < tail.rows * kColumnsPerPass; at += kThreads) {
    const std::int64_t i = at / kColumnsPerPass;
    const std::int64_t c = at % kColumnsPerPass;
    double sum = 0.0;
    for (std::int64_t j = i; j < tail.rows && c < taken; ++j)
      sum += tail.inverse_row(j)[i] * x[(tail.head + j) * columns + first + c];
    own[at] = sum;
    if (grid.block.x == 0 && c < taken) y[(first + c) * (tail.head + tail.rows) + tail.head + i] = sum;
  }
  __syncthreads();
  const std::int64_t k = std::int64_t{grid.block.x} * kThreads + threadIdx.x;
  if (k >= tail.head) return;
  double sums[kColumnsPerPass] = {};
#pragma unroll 4
  for (std::int64_t i = 0; i < tail.rows; ++i) {
    const double value = tail.values[i * tail.stride() + k];
#pragma unroll
    for (int c = 0; c < kColumnsPerPass; ++c) sums[c] += value * own[i * kColumnsPerPass + c];
  }
  for (int c = 0; c < taken; ++c) rest[(first + c) * tail.head + k] = x[k * columns + first + c] - sums[c];
}

/// Numbers of the parts of apply_from_right().
std::int64_t from_right_workspace(std::int64_t n, std::int64_t rows) {
  return RowCut(n, rows).parts * rows * n;
}

/// y [rows × n] = x L⁻¹, rows of x and y `stride` and `y_stride` numbers apart.
void apply_from_right(Stream stream, std::int64_t n, const double* factor, std::int64_t rows,
                      const double* x, std::int64_t stride, double* workspace, double* y,
                      std::int64_t y_stride) {
  if (n == 0) return;
  const RowCut cut(n, rows);
  launch(kernel<apply_from_right_kernel, DoubleTile::kThreads>,
         {double_tiles(n), cut.parts, double_tiles(rows)}, DoubleTile::kSharedBytes, stream, n, factor,
         rows, x, stride, cut, workspace);
  add_parts(stream, n, rows, cut.parts, workspace, y, nullptr, y_stride);
}

/// The tail's rows of s, and with `gram` the parts of sᵀs over the head's rows.
HeadCut start_tail(Stream stream, const FactorTail& tail, std::int64_t columns, const double* x, double* s,
                   std::int64_t stride, bool with_gram, double* workspace) {
  const HeadCut cut(tail, columns, with_gram);
  double* products = workspace + cut.gram_numbers(columns);
  launch(kernel<head_products_kernel, DoubleTile::kThreads>, {cut.all_tiles, cut.parts},
         DoubleTile::kSharedBytes, stream, tail, columns, s, stride, cut, workspace, products);
  if (tail.rows > 0) {
    launch(kernel<finish_tail_kernel, kThreads>, {parts_of(columns, kTailColumns)},
           static_cast<std::size_t>(tail.rows) * kTailColumns * sizeof(double), stream, tail, columns, x,
           cut.parts, products, s, stride);
  }
  return cut;
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
         {double_tiles(columns), double_tiles(n), cut.parts}, DoubleTile::kSharedBytes, stream, n, factor,
         columns, x, y, stride, cut, workspace);
  if (cut.parts == 1) return;
  launch_each(kernel<add_factor_parts_kernel, kThreads>, (n - cut.depth) * columns, 1, stream, n, columns,
              y, stride, cut, workspace);
}

std::int64_t tail_workspace(const FactorTail& tail, std::int64_t columns, bool with_gram) {
  if (columns == 0) return 0;
  const HeadCut cut(tail, columns, with_gram);
  return cut.gram_numbers(columns) + cut.parts * tail.rows * columns;
}

void apply_tail(Stream stream, const FactorTail& tail, std::int64_t columns, const double* x,
                double* workspace, double* s, std::int64_t stride) {
  if (tail.rows > 0 && columns > 0) start_tail(stream, tail, columns, x, s, stride, false, workspace);
}

std::int64_t apply_factor_transposed_workspace(std::int64_t head, std::int64_t columns) {
  return columns * head + from_right_workspace(head, columns);
}

void apply_factor_transposed(Stream stream, const FactorTail& tail, const double* factor,
                             std::int64_t columns, const double* x, double* workspace, double* y) {
  const std::int64_t n = tail.head + tail.rows;
  if (n == 0 || columns == 0) return;
  launch(kernel<tail_from_right_kernel, kThreads>,
         {std::max<std::int64_t>(1, parts_of(tail.head, kThreads)), parts_of(columns, kColumnsPerPass)},
         static_cast<std::size_t>(kBlock * kColumnsPerPass) * sizeof(double), stream, tail, columns, x,
         workspace, y);
  apply_from_right(stream, tail.head, factor, columns, workspace, tail.head,
                   workspace + columns * tail.head, y, n);
}

void dual_gram(Stream stream, const FactorTail& tail, std::int64_t docs, const double* x, double* s,
               std::int64_t stride, double lambda, double* workspace, double* m) {
  if (docs == 0) return;
  const HeadCut cut = start_tail(stream, tail, docs, x, s, stride, true, workspace);
  launch_each(kernel<finish_gram_kernel, 128>, docs, docs, stream, docs, cut.parts, workspace, tail.rows,
              s + tail.head * stride, stride, lambda, m);
}

std::int64_t append_workspace(std::int64_t n, std::int64_t pairs) {
  std::int64_t most = 0;  // of the blocks that are filled
  for (std::int64_t head = FactorTail(n).head; head + kBlock <= n + pairs; head += kBlock)
    most = std::max(most, kBlock * head + from_right_workspace(head, kBlock));
  return 2 * pairs * pairs + most;
}

void close_tail(Stream stream, const FactorTail& tail, double* factor, double* workspace,
                const CovarianceStatus* status) {
  apply_from_right(stream, tail.head, factor, tail.rows, tail.values, tail.stride(),
                   workspace + tail.rows * tail.head, workspace, tail.head);
  launch(kernel<close_tail_kernel, kThreads>, {tail.stride() / kFinishColumns},
         static_cast<std::size_t>(tail.rows) * kFinishColumns * sizeof(double), stream, tail, workspace,
         factor + factor_row(tail.head), status);
}

void append_pairs(Stream stream, std::int64_t n, double* factor, double* tail_values, std::int64_t docs,
                  const double* s, std::int64_t stride, const double* m, double lambda,
                  const PreferencePair* pairs, std::int64_t count, double* workspace,
                  CovarianceStatus* status) {
  if (count == 0) return;
  double* corner = workspace;
  double* inverse = corner + count * count;
  factor_pair_corner(stream, docs, m, pairs, count, corner, inverse, status);
  for (std::int64_t first = 0; first < count;) {
    FactorTail tail(n + first, tail_values);
    const std::int64_t added = std::min(count - first, kBlock - tail.rows);
    launch(kernel<append_rows_kernel, kThreads>, {tail.stride() / kFinishColumns},
           static_cast<std::size_t>(added) * kFinishColumns * sizeof(double), stream, n, tail, s, stride,
           NewRows{pairs, count, corner, inverse, first, added}, std::sqrt(lambda), status);
    tail.rows += added;
    first += added;
    if (tail.rows == kBlock) close_tail(stream, tail, factor, inverse + count * count, status);
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
