#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/runtime/launch.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// How a block computes a tile [64 × 64] of Σ_k A(i, k) B(j, k) in double on tensor cores: each warp
/// 32 × (8 · column_blocks) of it, k in order, 16 at a time through shared memory. Wide warps read shared
/// memory less, narrow ones leave registers to kernels that hold several tiles.
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

/// A thread's numbers of an operand on their way to shared memory.
template <class Tile>
struct HeldNumbers {
  double value[Tile::kHeld];
  bool along_depth = true;  // neighbouring threads hold neighbouring k's, or else neighbouring rows

  // Across rows a half warp takes 4 rows by 4 k's, whose stores fall into 16 banks.
  __device__ static int row(bool along_depth, int at) {
    return along_depth ? at / Tile::kDepth : at % 4 + 4 * (at / 16 % 16);
  }
  __device__ static int depth(bool along_depth, int at) {
    return along_depth ? at % Tile::kDepth : at / 4 % 4 + 4 * (at / 256);
  }

  template <class Operand>
  __device__ void load(Operand& operand, std::int64_t first) {
    operand.prepare(first);
    along_depth = operand.along_depth();
#pragma unroll
    for (int e = 0; e < Tile::kHeld; ++e) {
      const int at = static_cast<int>(threadIdx.x) + e * Tile::kThreads;
      value[e] = operand(row(along_depth, at), first + depth(along_depth, at));
    }
  }

  __device__ void store(double* shared) const {
#pragma unroll
    for (int e = 0; e < Tile::kHeld; ++e) {
      const int at = static_cast<int>(threadIdx.x) + e * Tile::kThreads;
      shared[row(along_depth, at) * Tile::kStride + depth(along_depth, at)] = value[e];
    }
  }
};

/// tile.sum += Σ_{k in [begin, end)} A(i, k) B(j, k). All threads of the block call it. a(i, k) and b(j, k)
/// give numbers, 0 outside the matrix, and are asked for k's in blocks of kDepth, rising; before each block
/// their prepare(first) is called and along_depth() asked, which says how its numbers lie in memory.
/// `shared` has kSharedBytes: while one buffer is multiplied, the other is filled.
template <class OperandA, class OperandB, class Tile>
__device__ inline void multiply_tile(std::int64_t begin, std::int64_t end, OperandA& a, OperandB& b,
                                     double* shared, Tile& tile) {
  HeldNumbers<Tile> held_a;
  HeldNumbers<Tile> held_b;
  const auto hold = [&](std::int64_t first) {
    if (first >= end) return;
    held_a.load(a, first);
    held_b.load(b, first);
  };
  double* filled = shared;
  double* other = shared + 2 * Tile::kOperand;
  hold(begin);
  for (std::int64_t first = begin; first < end; first += Tile::kDepth) {
    held_a.store(filled);
    held_b.store(filled + Tile::kOperand);
    __syncthreads();
    hold(first + Tile::kDepth);
    tile.multiply(filled, filled + Tile::kOperand);
    double* next = other;
    other = filled;
    filled = next;
  }
  __syncthreads();
}

/// A matrix of doubles as an operand, [rows × depth] from row `first` on; `stride` lies between the numbers
/// that are not neighbours.
template <bool by_depth>
struct DoubleOperand {
  const double* values;
  std::int64_t stride;
  std::int64_t rows;
  std::int64_t depth;
  std::int64_t first;

  __device__ void prepare(std::int64_t) {}
  __device__ bool along_depth() const { return by_depth; }
  __device__ double operator()(int i, std::int64_t k) const {
    const std::int64_t row = first + i;
    if (row >= rows || k >= depth) return 0.0;
    return values[by_depth ? row * stride + k : k * stride + row];
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
