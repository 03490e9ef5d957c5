#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/runtime/launch.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// How a block computes a tile [64 × 64] of Σ_k A(i, k) B(j, k) in double on tensor cores: 8 warps, each 16
/// × 32 of it, k in order, 16 at a time through shared memory.
struct DoubleTile {
  static constexpr int kSide = 64;
  static constexpr int kDepth = 16;
  static constexpr int kThreads = 256;
  // Between rows in shared memory: a half warp's loads of a fragment, 4 rows by 4 k's, fall into 16 banks.
  static constexpr int kStride = kDepth + 4;
  static constexpr std::size_t kSharedBytes = 2UL * kSide * kStride * sizeof(double);

  static constexpr int kRowBlocks = 2;     // of 8, a warp's
  static constexpr int kColumnBlocks = 4;  // of 8
  static constexpr int kHeld = kSide * kDepth / kThreads;

  double sum[kRowBlocks][kColumnBlocks][2] = {};

  __device__ static int row(int u) {
    return static_cast<int>(threadIdx.x) / 64 * 16 + 8 * u + static_cast<int>(threadIdx.x) % 32 / 4;
  }
  __device__ static int column(int v, int e) {
    return static_cast<int>(threadIdx.x) / 32 % 2 * 32 + 8 * v + static_cast<int>(threadIdx.x) % 4 * 2 + e;
  }

  /// Calls body(row, column, sum) for the thread's numbers; the sum may be changed.
  template <class Body>
  __device__ void for_each(const Body& body) {
#pragma unroll
    for (int u = 0; u < kRowBlocks; ++u) {
#pragma unroll
      for (int v = 0; v < kColumnBlocks; ++v) {
#pragma unroll
        for (int e = 0; e < 2; ++e) body(row(u), column(v, e), sum[u][v][e]);
      }
    }
  }
};

/// A thread's numbers of an operand on their way to shared memory.
struct HeldNumbers {
  double value[DoubleTile::kHeld];
  bool along_depth = true;  // neighbouring threads hold neighbouring k's, or else neighbouring rows

  __device__ static int row(bool along_depth, int at) {
    return along_depth ? at / DoubleTile::kDepth : at % DoubleTile::kSide;
  }
  __device__ static int depth(bool along_depth, int at) {
    return along_depth ? at % DoubleTile::kDepth : at / DoubleTile::kSide;
  }

  template <class Operand>
  __device__ void load(Operand& operand, std::int64_t first) {
    operand.prepare(first);
    along_depth = operand.along_depth();
#pragma unroll
    for (int e = 0; e < DoubleTile::kHeld; ++e) {
      const int at = static_cast<int>(threadIdx.x) + e * DoubleTile::kThreads;
      value[e] = operand(row(along_depth, at), first + depth(along_depth, at));
    }
  }

  __device__ void store(double* shared) const {
#pragma unroll
    for (int e = 0; e < DoubleTile::kHeld; ++e) {
      const int at = static_cast<int>(threadIdx.x) + e * DoubleTile::kThreads;
      shared[row(along_depth, at) * DoubleTile::kStride + depth(along_depth, at)] = value[e];
    }
  }
};

/// tile.sum += Σ_{k in [begin, end)} A(i, k) B(j, k). All threads of the block call it. a(i, k) and b(j, k)
/// give numbers, 0 outside the matrix, and are asked for k's in blocks of kDepth, rising; before each block
/// their prepare(first) is called and along_depth() asked, which says how its numbers lie in memory.
/// `shared` has kSharedBytes.
template <class OperandA, class OperandB>
__device__ inline void multiply_tile(std::int64_t begin, std::int64_t end, OperandA& a, OperandB& b,
                                     double* shared, DoubleTile& tile) {
  constexpr int kStride = DoubleTile::kStride;
  double* shared_a = shared;
  double* shared_b = shared + DoubleTile::kSide * kStride;
  HeldNumbers held_a;
  HeldNumbers held_b;
  const auto hold = [&](std::int64_t first) {
    if (first >= end) return;
    held_a.load(a, first);
    held_b.load(b, first);
  };
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const double* from_a = shared_a + DoubleTile::row(0) * kStride + lane % 4;
  const double* from_b =
      shared_b + (static_cast<int>(threadIdx.x) / 32 % 2 * 32 + lane / 4) * kStride + lane % 4;
  hold(begin);
  for (std::int64_t first = begin; first < end; first += DoubleTile::kDepth) {
    held_a.store(shared_a);
    held_b.store(shared_b);
    __syncthreads();
    hold(first + DoubleTile::kDepth);
#pragma unroll
    for (int k = 0; k < DoubleTile::kDepth; k += 4) {
      double left[DoubleTile::kRowBlocks];
      double right[DoubleTile::kColumnBlocks];
#pragma unroll
      for (int u = 0; u < DoubleTile::kRowBlocks; ++u) left[u] = from_a[8 * u * kStride + k];
#pragma unroll
      for (int v = 0; v < DoubleTile::kColumnBlocks; ++v) right[v] = from_b[8 * v * kStride + k];
#pragma unroll
      for (int u = 0; u < DoubleTile::kRowBlocks; ++u) {
#pragma unroll
        for (int v = 0; v < DoubleTile::kColumnBlocks; ++v) {
          multiply_add_8x8x4(left[u], right[v], tile.sum[u][v][0], tile.sum[u][v][1]);
        }
      }
    }
    __syncthreads();
  }
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
