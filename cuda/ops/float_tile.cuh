#pragma once

#include <cstdint>

#include "cuda/ops/float_tile.h"
#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Numbers moved by one instruction.
template <int count>
struct alignas(count * sizeof(float)) FloatGroup {
  float value[count];
};

/// A thread's numbers of a tile. Along each side they come in groups of up to four, interleaved
/// with the other threads' groups, so that a warp's loads from shared memory are contiguous.
template <int kRows, int kColumns>
struct FloatFragment {
  static constexpr int kRowGroup = kRows < 4 ? kRows : 4;
  static constexpr int kColumnGroup = kColumns < 4 ? kColumns : 4;

  float sum[kRows][kColumns] = {};

  __device__ static bool works(const FloatTile& tile) {
    return static_cast<int>(threadIdx.x) < tile.row_shares * tile.column_shares;
  }
  __device__ static int row(const FloatTile& tile, int i) {
    return i / kRowGroup * (kRowGroup * tile.row_shares) +
           static_cast<int>(threadIdx.x) / tile.column_shares * kRowGroup + i % kRowGroup;
  }
  __device__ static int column(const FloatTile& tile, int j) {
    return j / kColumnGroup * (kColumnGroup * tile.column_shares) +
           static_cast<int>(threadIdx.x) % tile.column_shares * kColumnGroup + j % kColumnGroup;
  }

  /// sum += A Bᵀ over the k's that lie in shared memory, in order; from one to the next it is a step.
  __device__ void multiply(const FloatTile& tile, const float* a, int step_a, const float* b, int step_b) {
    using RowGroup = FloatGroup<kRowGroup>;
    using ColumnGroup = FloatGroup<kColumnGroup>;
    if (!works(tile)) return;
    const float* from_a = a + row(tile, 0);
    const float* from_b = b + column(tile, 0);
#pragma unroll 4
    for (int k = 0; k < static_cast<int>(FloatTile::kDepth); ++k) {
      RowGroup left[kRows / kRowGroup];
      ColumnGroup right[kColumns / kColumnGroup];
#pragma unroll
      for (int g = 0; g < kRows / kRowGroup; ++g) {
        left[g] = *reinterpret_cast<const RowGroup*>(from_a + k * step_a + g * kRowGroup * tile.row_shares);
      }
#pragma unroll
      for (int g = 0; g < kColumns / kColumnGroup; ++g) {
        right[g] = *reinterpret_cast<const ColumnGroup*>(from_b + k * step_b +
                                                         g * kColumnGroup * tile.column_shares);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          sum[i][j] +=
              left[i / kRowGroup].value[i % kRowGroup] * right[j / kColumnGroup].value[j % kColumnGroup];
        }
      }
    }
  }

  /// Calls body(row, column, value) for the thread's numbers of the tile.
  template <class Body>
  __device__ void for_each(const FloatTile& tile, const Body& body) const {
    if (!works(tile)) return;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) body(row(tile, i), column(tile, j), sum[i][j]);
    }
  }
};

/// Calls `choose` with a value of the tile's fragment type and returns its result, a kernel for that type.
template <class Choose>
auto for_fragment_of(const FloatTile& tile, const Choose& choose) {
  if (tile.share_rows == 8) return choose(FloatFragment<8, 8>{});
  return tile.share_rows == 4 ? choose(FloatFragment<4, 8>{}) : choose(FloatFragment<2, 4>{});
}

/// A matrix [rows × depth] as an operand, from row `first` on; along its depth or along its rows the
/// numbers are neighbours; in the other direction they are `stride` apart.
template <bool along_depth>
struct FloatOperand {
  const float* values;
  std::int64_t stride;
  std::int64_t rows;
  std::int64_t depth;
  std::int64_t first;

  /// Whether neighbouring rows can be moved in fours: groups are aligned, and each is entirely inside or
  /// outside.
  __device__ bool in_fours() const {
    return reinterpret_cast<std::uintptr_t>(values) % sizeof(FloatGroup<4>) == 0 && stride % 4 == 0 &&
           rows % 4 == 0 && first % 4 == 0;
  }
};

/// Starts copying `group` neighbouring numbers, or writes zeros for numbers outside the matrix.
template <int group>
__device__ inline void stage_group(float* to, const float* from, bool inside) {
  if (inside) {
    copy_async<group>(to, from);
    return;
  }
#pragma unroll
  for (int e = 0; e < group; ++e) to[e] = 0.0F;
}

/// Copies `side` rows of an operand to shared memory; rows outside the matrix are 0. Neighbouring threads
/// copy neighbouring numbers in either layout.
template <bool along_depth>
struct StagedSide {
  static constexpr int kDepth = static_cast<int>(FloatTile::kDepth);

  const FloatOperand<along_depth>& operand;
  int side;
  int rows;        // of them within the matrix
  int depth_step;  // between values of k in shared memory
  bool fours;

  __device__ StagedSide(const FloatOperand<along_depth>& of, int side_rows)
      : operand(of),
        side(side_rows),
        rows(static_cast<int>(min(of.rows - of.first, std::int64_t{side_rows}))),
        depth_step(static_cast<int>(FloatTile::stride(side_rows))),
        // Neighbours along the depth do not stay neighbours.
        fours(!along_depth && side % 4 == 0 && operand.in_fours()) {}

  /// Starts copying numbers [0, side) × [first, first + kDepth).
  __device__ void stage(std::int64_t first, float* to) const {
    if constexpr (along_depth) {
      stage_rows(first, to);
    } else if (fours) {
      stage_depths<4>(first, to);
    } else {
      stage_depths<1>(first, to);
    }
  }

 private:
  /// A thread keeps its value of k and goes down the rows.
  __device__ void stage_rows(std::int64_t first, float* to) const {
    const int k = static_cast<int>(threadIdx.x) % kDepth;
    const int step = static_cast<int>(blockDim.x) / kDepth;
    const bool inside = first + k < operand.depth;
    int i = static_cast<int>(threadIdx.x) / kDepth;
    const float* from = operand.values + (operand.first + i) * operand.stride + first + k;
    for (float* out = to + k * depth_step; i < side; i += step) {
      stage_group<1>(out + i, from, inside && i < rows);
      from += step * operand.stride;
    }
  }

  /// A warp takes a k and goes along the rows.
  template <int group>
  __device__ void stage_depths(std::int64_t first, float* to) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int k = static_cast<int>(threadIdx.x) / 32; k < kDepth; k += static_cast<int>(blockDim.x) / 32) {
      const bool inside = first + k < operand.depth;
      const float* from = operand.values + (first + k) * operand.stride + operand.first;
      float* out = to + k * depth_step;
      for (int i = lane * group; i < side; i += 32 * group)
        stage_group<group>(out + i, from + i, inside && i < rows);
    }
  }
};

/// fragment.sum += Σ_{k in [begin, end)} A(i, k) B(j, k) for the block's tile; k runs in order. All threads
/// of the block call it. Double buffering: while one buffer is multiplied, the other is filled.
template <class Fragment, bool a_along_depth, bool b_along_depth>
__device__ inline void multiply_tile(const FloatTile& tile, std::int64_t begin, std::int64_t end,
                                     const FloatOperand<a_along_depth>& a,
                                     const FloatOperand<b_along_depth>& b, Fragment& fragment) {
  const StagedSide<a_along_depth> side_a(a, static_cast<int>(tile.rows()));
  const StagedSide<b_along_depth> side_b(b, static_cast<int>(tile.columns()));
  const std::int64_t numbers_a = FloatTile::side_numbers(tile.rows());
  const std::int64_t numbers_b = FloatTile::side_numbers(tile.columns());
  float* shared_a = dynamic_shared<float>();
  float* shared_b = shared_a + 2 * numbers_a;
  const auto stage = [&](std::int64_t first, int buffer) {
    if (first < end) {
      side_a.stage(first, shared_a + buffer * numbers_a);
      side_b.stage(first, shared_b + buffer * numbers_b);
    }
    commit_copies();
  };
  int buffer = 0;
  stage(begin, buffer);
  for (std::int64_t first = begin; first < end; first += FloatTile::kDepth) {
    stage(first + FloatTile::kDepth, 1 - buffer);
    wait_for_copies<1>();
    __syncthreads();
    fragment.multiply(tile, shared_a + buffer * numbers_a, side_a.depth_step, shared_b + buffer * numbers_b,
                      side_b.depth_step);
    __syncthreads();
    buffer = 1 - buffer;
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
