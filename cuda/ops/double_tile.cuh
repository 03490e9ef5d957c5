#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

constexpr std::int64_t kWantedBlocks = 264;  // two per multiprocessor of a large device

/// How a block computes a tile [64 × 64] of Σ_k A(i, k) B(j, k) in double on tensor cores: each warp
/// 32 × (8 · column_blocks) of it, k in order, 16 at a time through shared memory. Wide warps read shared
/// memory less often; narrow ones leave registers for kernels with several tiles.
template <int column_blocks>
struct DoubleTileOf {
  static constexpr int kSide = 64;
  static constexpr int kDepth = 16;
  static constexpr int kRowBlocks = 2;  // of 16, a warp's
  static constexpr int kColumnBlocks = column_blocks;
  static constexpr int kNumbers = 4;  // of a block of 16 × 8, a thread's
  static constexpr int kWarpRows = 16 * kRowBlocks;
  static constexpr int kWarpColumns = 8 * kColumnBlocks;
  static constexpr int kWarpsAcross = kSide / kWarpColumns;
  static constexpr int kThreads = 32 * kWarpsAcross * (kSide / kWarpRows);
  static constexpr int kHeld = kSide * kDepth / kThreads;
  // Between rows in shared memory: a half warp's loads of a fragment, 4 rows by 4 k's, fall into 16 banks.
  static constexpr int kStride = kDepth + 4;
  static constexpr int kOperand = kSide * kStride;
  static constexpr std::size_t kSharedBytes = 4UL * kOperand * sizeof(double);  // two buffers of both

  double sum[kRowBlocks][kColumnBlocks][kNumbers] = {};

  __device__ static int row(int u, int e) {
    return static_cast<int>(threadIdx.x) / (32 * kWarpsAcross) * kWarpRows + 16 * u + e / 2 * 8 +
           static_cast<int>(threadIdx.x) % 32 / 4;
  }
  __device__ static int column(int v, int e) {
    return static_cast<int>(threadIdx.x) / 32 % kWarpsAcross * kWarpColumns + 8 * v +
           static_cast<int>(threadIdx.x) % 4 * 2 + e % 2;
  }

  /// Calls body(row, column, sum) for the thread's numbers; the sum may be changed.
  template <class Body>
  __device__ void for_each(const Body& body) {
#pragma unroll
    for (int u = 0; u < kRowBlocks; ++u) {
#pragma unroll
      for (int v = 0; v < kColumnBlocks; ++v) {
#pragma unroll
        for (int e = 0; e < kNumbers; ++e) body(row(u, e), column(v, e), sum[u][v][e]);
      }
    }
  }

  /// sum += A Bᵀ over the k's that lie in shared memory.
  __device__ void multiply(const double* a, const double* b) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const double* from_a = a + row(0, 0) * kStride + lane % 4;
    const double* from_b =
        b + (static_cast<int>(threadIdx.x) / 32 % kWarpsAcross * kWarpColumns + lane / 4) * kStride +
        lane % 4;
    double left[kRowBlocks][8];
#pragma unroll
    for (int u = 0; u < kRowBlocks; ++u) {
#pragma unroll
      for (int i = 0; i < 8; ++i) left[u][i] = from_a[(16 * u + 8 * (i % 2)) * kStride + 4 * (i / 2)];
    }
#pragma unroll
    for (int v = 0; v < kColumnBlocks; ++v) {
      double right[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) right[i] = from_b[8 * v * kStride + 4 * i];
#pragma unroll
      for (int u = 0; u < kRowBlocks; ++u) multiply_add_16x8x16(left[u], right, sum[u][v]);
    }
  }
};

using DoubleTile = DoubleTileOf<4>;
using NarrowDoubleTile = DoubleTileOf<2>;

/// A thread's numbers of an operand, in registers on their way to shared memory, where they become doubles:
/// a conversion waits for its number.
template <class Tile, class Number>
struct HeldNumbers {
  Number value[Tile::kHeld];
  bool along_depth = true;  // neighbouring threads hold neighbouring k's, or else neighbouring rows

  // Along the depth a thread has one k. Across the rows a half warp takes 4 rows by 4 k's, whose stores
  // fall into 16 banks, and a thread 4 k's of kHeld / 4 rows each.
  static constexpr int kRowsOfK = Tile::kHeld / 4;

  __device__ static int row_along(int e) {
    return static_cast<int>(threadIdx.x) / Tile::kDepth + e * (Tile::kThreads / Tile::kDepth);
  }
  __device__ static int k_along() { return static_cast<int>(threadIdx.x) % Tile::kDepth; }
  __device__ static int row_across(int e) {
    const int thread = static_cast<int>(threadIdx.x);
    return thread % 4 + 4 * (thread / 16) + Tile::kThreads / 4 * (e % kRowsOfK);
  }
  __device__ static int k_across(int e) {
    return static_cast<int>(threadIdx.x) / 4 % 4 + 4 * (e / kRowsOfK);
  }

  template <class Operand>
  __device__ void load(Operand& operand, std::int64_t first) {
    operand.prepare(first);
    along_depth = operand.along_depth();
    // Rows beyond the matrix repeat its last one; their results are not used.
    const int last = operand.rows_within() - 1;
    if (along_depth) {
      const auto column = operand.at(first + k_along());
#pragma unroll
      for (int e = 0; e < Tile::kHeld; ++e) value[e] = Number{0};
      if (!column.inside) return;
#pragma unroll
      for (int e = 0; e < Tile::kHeld; ++e) value[e] = column(min(row_along(e), last));
    } else {
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const auto column = operand.at(first + k_across(q * kRowsOfK));
#pragma unroll
        for (int e = q * kRowsOfK; e < (q + 1) * kRowsOfK; ++e)
          value[e] = column.inside ? column(min(row_across(e), last)) : Number{0};
      }
    }
  }

  __device__ void store(double* shared) const {
    if (along_depth) {
#pragma unroll
      for (int e = 0; e < Tile::kHeld; ++e)
        shared[row_along(e) * Tile::kStride + k_along()] = double{value[e]};
    } else {
#pragma unroll
      for (int e = 0; e < Tile::kHeld; ++e)
        shared[row_across(e) * Tile::kStride + k_across(e)] = double{value[e]};
    }
  }
};

/// Rows of a tile that lie within a matrix.
__device__ inline int rows_of_tile(std::int64_t all, std::int64_t first) {
  return static_cast<int>(min(all - first, std::int64_t{DoubleTile::kSide}));
}

/// Offset of a tile's row from its first: below 2³², as rows are shorter than 2²⁶ numbers.
__device__ inline std::uint32_t place_of_row(int i, int step) {
  return static_cast<std::uint32_t>(i) * static_cast<std::uint32_t>(step);
}

/// Numbers of one k, `step` apart from row to row.
template <class T>
struct StridedColumn {
  const T* values;
  int step;
  bool inside;  // k is

  __device__ T operator()(int i) const { return values[place_of_row(i, step)]; }
};

/// An operand's columns give numbers of this type.
template <class Operand>
using NumberOf = decltype(std::declval<Operand&>().at(0)(0));

/// Two operands on their way to shared memory, or one for a product with itself.
template <class OperandA, class OperandB, class Tile>
struct TwoSides {
  OperandA& a;
  OperandB& b;
  HeldNumbers<Tile, NumberOf<OperandA>> held_a;
  HeldNumbers<Tile, NumberOf<OperandB>> held_b;

  __device__ void load(std::int64_t first) {
    held_a.load(a, first);
    held_b.load(b, first);
  }
  __device__ void store(double* buffer) const {
    held_a.store(buffer);
    held_b.store(buffer + Tile::kOperand);
  }
  __device__ static const double* right(const double* buffer) { return buffer + Tile::kOperand; }
};

template <class Operand, class Tile>
struct OneSide {
  Operand& a;
  HeldNumbers<Tile, NumberOf<Operand>> held;

  __device__ void load(std::int64_t first) { held.load(a, first); }
  __device__ void store(double* buffer) const { held.store(buffer); }
  __device__ static const double* right(const double* buffer) { return buffer; }
};

/// Double buffering: while one buffer is multiplied, the other is filled.
template <class Sides, class Tile>
__device__ inline void multiply_sides(std::int64_t begin, std::int64_t end, Sides& sides, double* shared,
                                      Tile& tile) {
  double* filled = shared;
  double* other = shared + 2 * Tile::kOperand;
  if (begin < end) sides.load(begin);
  for (std::int64_t first = begin; first < end; first += Tile::kDepth) {
    sides.store(filled);
    __syncthreads();
    if (first + Tile::kDepth < end) sides.load(first + Tile::kDepth);
    tile.multiply(filled, sides.right(filled));
    double* next = other;
    other = filled;
    filled = next;
  }
  __syncthreads();
}

/// tile.sum += Σ_{k in [begin, end)} A(i, k) B(j, k). All threads of the block call it. a.at(k)(i) and
/// b.at(k)(j) give numbers of the rows that rows_within() counts, and 0 where a k is not `inside`. They are
/// called for k in ascending blocks of kDepth. Before each block, prepare(first) is called, and
/// along_depth() returns the memory layout. Work that depends on k only belongs in at(), because a thread
/// uses its result for several rows. `shared` has kSharedBytes.
template <class OperandA, class OperandB, class Tile>
__device__ inline void multiply_tile(std::int64_t begin, std::int64_t end, OperandA& a, OperandB& b,
                                     double* shared, Tile& tile) {
  TwoSides<OperandA, OperandB, Tile> sides{a, b, {}, {}};
  multiply_sides(begin, end, sides, shared, tile);
}

/// Multiplies with B = A, computed once: a tile on the diagonal of a Gram matrix.
template <class Operand, class Tile>
__device__ inline void multiply_by_itself(std::int64_t begin, std::int64_t end, Operand& a, double* shared,
                                          Tile& tile) {
  OneSide<Operand, Tile> sides{a, {}};
  multiply_sides(begin, end, sides, shared, tile);
}

/// A matrix of doubles as an operand, [rows × depth] from row `first` on; `stride` is the distance
/// between numbers that are not neighbours.
template <bool by_depth>
struct DoubleOperand {
  const double* values;
  std::int64_t stride;
  std::int64_t rows;
  std::int64_t depth;
  std::int64_t first;

  __device__ void prepare(std::int64_t) {}
  __device__ bool along_depth() const { return by_depth; }
  __device__ int rows_within() const { return rows_of_tile(rows, first); }
  __device__ StridedColumn<double> at(std::int64_t k) const {
    if (by_depth) return {values + first * stride + k, static_cast<int>(stride), k < depth};
    return {values + k * stride + first, 1, k < depth};
  }
};

/// Row and column of the tiles of a lower triangle, counted row by row.
__device__ inline void lower_tile(unsigned number, std::int64_t& row, std::int64_t& column) {
  unsigned i = 0;
  unsigned before = 0;
  while (before + i + 1 <= number) before += ++i;
  row = std::int64_t{i} * DoubleTile::kSide;
  column = std::int64_t{number - before} * DoubleTile::kSide;
}

/// Tiles along a side of n.
inline unsigned double_tiles(std::int64_t n) {
  return static_cast<unsigned>((n + DoubleTile::kSide - 1) / DoubleTile::kSide);
}

/// Tiles of a lower triangle.
inline std::int64_t lower_tiles(std::int64_t n) {
  const std::int64_t side = double_tiles(n);
  return side * (side + 1) / 2;
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
