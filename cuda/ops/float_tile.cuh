#pragma once

#include <cstdint>
#include <cstring>

#include "cuda/ops/block_sum.cuh"
#include "cuda/runtime/grid.cuh"

// Products of float32 matrices in shared memory, on tensor cores. A number is the sum of two TF32 numbers,
// of 11 bits each, and a product that of three: the errors are those of float32 (the split, and sums that
// leave the tensor core after each step, because it cuts them off: Ootomo and Yokota, 2022).
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Numbers moved by one instruction.
template <int count>
struct alignas(count * sizeof(float)) FloatGroup {
  float value[count];
};

/// Rounds to the nearest of the numbers that tensor cores multiply.
__device__ inline float nearest_tf32(float number) {
  constexpr std::uint32_t kHalf = 1U << 12;
  std::uint32_t bits = 0;
  memcpy(&bits, &number, sizeof(bits));
  bits = (bits + kHalf) & ~(2 * kHalf - 1);
  memcpy(&number, &bits, sizeof(number));
  return number;
}

/// A warp's rows and columns of a product, counted in tiles of 16 rows and of 8 columns.
struct WarpPlace {
  static constexpr int kRows = 16;
  static constexpr int kColumns = 8;
  static constexpr int kMostRowTiles = 2;
  static constexpr int kMostColumnTiles = 4;

  int row_tile;
  int row_tiles;  // 1 or 2
  int column_group;
  int column_tile;
  int column_tiles;  // 1 to 4

  __device__ static int column_groups(int column_tiles) {
    return (column_tiles + kMostColumnTiles - 1) / kMostColumnTiles;
  }
  /// The tile's row of the calling thread's e-th number, and its column.
  __device__ int row(int u, int e) const {
    return kRows * (row_tile + u) + 8 * (e / 2) + static_cast<int>(threadIdx.x) % 32 / 4;
  }
  __device__ int column(int v, int e) const {
    return kColumns * (column_tile + v) + static_cast<int>(threadIdx.x) % 4 * 2 + e % 2;
  }
};

/// Calls body(number, place) for the calling warp's share of `count` products. A number of a single product
/// belongs to the same thread whenever a block of as many threads divides a product of this size.
template <class Body>
__device__ void for_each_place(int count, int row_tiles, int column_tiles, const Body& body) {
  const int pairs = (row_tiles + WarpPlace::kMostRowTiles - 1) / WarpPlace::kMostRowTiles;
  const int groups = WarpPlace::column_groups(column_tiles);
  const int warps = static_cast<int>(blockDim.x) / 32;
  for (int i = static_cast<int>(threadIdx.x) / 32; i < count * pairs * groups; i += warps) {
    const int pair = i / groups % pairs;
    const int group = i % groups;
    const int row = row_tiles * pair / pairs;
    const int column = column_tiles * group / groups;
    body(i / groups / pairs, WarpPlace{row, row_tiles * (pair + 1) / pairs - row, group, column,
                                       column_tiles * (group + 1) / groups - column});
  }
}

/// An operand in shared memory, whose neighbours along the depth, or else across it, are neighbours in
/// memory. The others are an odd multiple of eight numbers apart, so that a warp reads from all banks.
template <bool along_depth>
struct SharedOperand {
  const float* values;
  int stride;

  /// A thread's two numbers of a row among the eight from `depth` on. Which two it takes is the same for
  /// both operands of a product, and differs by their layout.
  __device__ void read(int row, int depth, float& first, float& second) const {
    const int t = static_cast<int>(threadIdx.x) % 4;
    if constexpr (along_depth) {
      const auto two = *reinterpret_cast<const FloatGroup<2>*>(values + row * stride + depth + 2 * t);
      first = two.value[0];
      second = two.value[1];
    } else {
      const float* from = values + (depth + t) * stride + row;
      first = from[0];
      second = from[4 * stride];
    }
  }
};

/// A warp's numbers of a product, up to 32 × 32.
struct FloatTile {
  float sum[WarpPlace::kMostRowTiles][WarpPlace::kMostColumnTiles][4] = {};

  /// sum += Σ_k A(i, k) B(j, k), eight k at a time, of a `depth` that is a multiple of eight.
  template <bool along_depth>
  __device__ void multiply_add(const WarpPlace& at, const SharedOperand<along_depth>& a,
                               const SharedOperand<along_depth>& b, int depth) {
    const int g = static_cast<int>(threadIdx.x) % 32 / 4;
#pragma unroll 1
    for (int k = 0; k < depth; k += 8) {
      float left[WarpPlace::kMostRowTiles][2][4];
#pragma unroll
      for (int u = 0; u < WarpPlace::kMostRowTiles; ++u) {
        if (u >= at.row_tiles) continue;
        a.read(at.row(u, 0), k, left[u][0][0], left[u][0][2]);
        a.read(at.row(u, 2), k, left[u][0][1], left[u][0][3]);
        split(left[u]);
      }
#pragma unroll
      for (int v = 0; v < WarpPlace::kMostColumnTiles; ++v) {
        if (v >= at.column_tiles) continue;
        float right[2][2];
        b.read(WarpPlace::kColumns * (at.column_tile + v) + g, k, right[0][0], right[0][1]);
        split(right);
#pragma unroll
        for (int u = 0; u < WarpPlace::kMostRowTiles; ++u) {
          if (u < at.row_tiles) multiply_add_16x8x8(left[u], right, sum[u][v]);
        }
      }
    }
  }

 private:
  /// Makes of numbers[0] the larger and the smaller summand of each.
  template <int count>
  __device__ static void split(float (&numbers)[2][count]) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float number = numbers[0][i];
      numbers[0][i] = nearest_tf32(number);
      numbers[1][i] = nearest_tf32(number - numbers[0][i]);
    }
  }
};

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
