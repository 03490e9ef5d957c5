#pragma once

#include <cstdint>

#include "cuda/ops/float_tile.h"
#include "cuda/runtime/launch.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Numbers moved by one instruction.
template <int count>
struct alignas(count * sizeof(float)) FloatGroup {
  float value[count];
};

/// Layout of a side in shared memory: the distance between rows, and between values of k.
struct SharedSide {
  int row_step;
  int depth_step;
};

/// A thread's numbers of a tile in float32. Along each side they come in groups of up to four, interleaved
/// with the other threads' groups, so that a warp's loads from shared memory are contiguous.
template <int kRows, int kColumns>
struct FloatFragment {
  static constexpr int kRowGroup = kRows < 4 ? kRows : 4;
  static constexpr int kColumnGroup = kColumns < 4 ? kColumns : 4;

  float sum[kRows][kColumns] = {};

  template <bool along_depth>
  __device__ static SharedSide shared_side(int side) {
    return {1, static_cast<int>(FloatTile::stride(side))};
  }
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

  /// sum += A Bᵀ over the k's that lie in shared memory, in order.
  __device__ void multiply(const FloatTile& tile, const float* a, SharedSide side_a, const float* b,
                           SharedSide side_b) {
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
        left[g] = *reinterpret_cast<const RowGroup*>(from_a + k * side_a.depth_step +
                                                     g * kRowGroup * tile.row_shares);
      }
#pragma unroll
      for (int g = 0; g < kColumns / kColumnGroup; ++g) {
        right[g] = *reinterpret_cast<const ColumnGroup*>(from_b + k * side_b.depth_step +
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

/// A thread's numbers of its warp's 32 × 32 of a tile on tensor cores: factors are rounded to TF32, sums
/// are float32, 8 k's at a time.
struct Tf32Fragment {
  static constexpr int kRowBlocks = 2;     // of 16
  static constexpr int kColumnBlocks = 4;  // of 8
  static constexpr int kNumbers = 4;       // of a block, a thread's

  float sum[kRowBlocks][kColumnBlocks][kNumbers] = {};

  template <bool along_depth>
  __device__ static SharedSide shared_side(int side) {
    if (along_depth) return {static_cast<int>(FloatTile::kTf32RowStride), 1};
    return {1, side + static_cast<int>(FloatTile::kTf32DepthPad)};
  }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int first_row(const FloatTile& tile) {
    return static_cast<int>(threadIdx.x) / 32 / tile.column_shares * 32;
  }
  __device__ static int first_column(const FloatTile& tile) {
    return static_cast<int>(threadIdx.x) / 32 % tile.column_shares * 32;
  }

  __device__ void multiply(const FloatTile& tile, const float* a, SharedSide side_a, const float* b,
                           SharedSide side_b) {
    const float* from_a =
        a + (first_row(tile) + lane() / 4) * side_a.row_step + lane() % 4 * side_a.depth_step;
    const float* from_b =
        b + (first_column(tile) + lane() / 4) * side_b.row_step + lane() % 4 * side_b.depth_step;
#pragma unroll
    for (int k = 0; k < static_cast<int>(FloatTile::kDepth); k += 8) {
      std::uint32_t left[kRowBlocks][4];
#pragma unroll
      for (int u = 0; u < kRowBlocks; ++u) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          left[u][i] = to_tf32(
              from_a[(16 * u + 8 * (i % 2)) * side_a.row_step + (k + 4 * (i / 2)) * side_a.depth_step]);
        }
      }
#pragma unroll
      for (int v = 0; v < kColumnBlocks; ++v) {
        std::uint32_t right[2];
#pragma unroll
        for (int i = 0; i < 2; ++i)
          right[i] = to_tf32(from_b[8 * v * side_b.row_step + (k + 4 * i) * side_b.depth_step]);
#pragma unroll
        for (int u = 0; u < kRowBlocks; ++u) multiply_add_16x8x8(left[u], right, sum[u][v]);
      }
    }
  }

  template <class Body>
  __device__ void for_each(const FloatTile& tile, const Body& body) const {
    const int row = first_row(tile) + lane() / 4;
    const int column = first_column(tile) + lane() % 4 * 2;
#pragma unroll
    for (int u = 0; u < kRowBlocks; ++u) {
#pragma unroll
      for (int v = 0; v < kColumnBlocks; ++v) {
#pragma unroll
        for (int e = 0; e < kNumbers; ++e)
          body(row + 16 * u + e / 2 * 8, column + 8 * v + e % 2, sum[u][v][e]);
      }
    }
  }
};

/// Calls `choose` with a value of the tile's fragment type and returns its result, a kernel for that type.
template <class Choose>
auto for_fragment_of(const FloatTile& tile, const Choose& choose) {
  if (tile.precision == Precision::kTf32) return choose(Tf32Fragment{});
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

  /// Whether neighbours can be moved in fours: groups are aligned, and each is entirely inside or outside.
  __device__ bool in_fours() const {
    return reinterpret_cast<std::uintptr_t>(values) % sizeof(FloatGroup<4>) == 0 && stride % 4 == 0 &&
           (along_depth ? depth : rows) % 4 == 0 && (along_depth || first % 4 == 0);
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
template <class Fragment, bool along_depth>
struct StagedSide {
  static constexpr int kDepth = static_cast<int>(FloatTile::kDepth);

  const FloatOperand<along_depth>& operand;
  int side;
  int rows;  // of them within the matrix
  SharedSide shared;
  bool fours;

  __device__ StagedSide(const FloatOperand<along_depth>& of, int side_rows)
      : operand(of),
        side(side_rows),
        rows(static_cast<int>(min(of.rows - of.first, std::int64_t{side_rows}))),
        shared(Fragment::template shared_side<along_depth>(side_rows)) {
    const bool neighbours_stay = (along_depth ? shared.depth_step : shared.row_step) == 1;
    fours = neighbours_stay && side % 4 == 0 && operand.in_fours();
  }

  /// Starts copying numbers [0, side) × [first, first + kDepth).
  __device__ void stage(std::int64_t first, float* to) const {
    if (fours) {
      stage_groups<4>(first, to);
    } else {
      stage_groups<1>(first, to);
    }
  }

 private:
  template <int group>
  __device__ void stage_groups(std::int64_t first, float* to) const {
    const int thread = static_cast<int>(threadIdx.x);
    if constexpr (along_depth) {
      // A thread keeps its values of k and goes down the rows.
      constexpr int kGroups = kDepth / group;
      const int k = thread % kGroups * group;
      const int step = static_cast<int>(blockDim.x) / kGroups;
      const bool inside = first + k < operand.depth;
      int i = thread / kGroups;
      const float* from = operand.values + (operand.first + i) * operand.stride + first + k;
      float* out = to + i * shared.row_step + k * shared.depth_step;
      for (; i < side; i += step) {
        stage_group<group>(out, from, inside && i < rows);
        from += step * operand.stride;
        out += step * shared.row_step;
      }
    } else {
      // A warp takes a k and goes along the rows.
      for (int k = thread / 32; k < kDepth; k += static_cast<int>(blockDim.x) / 32) {
        const bool inside = first + k < operand.depth;
        const float* from = operand.values + (first + k) * operand.stride + operand.first;
        float* out = to + k * shared.depth_step;
        for (int i = thread % 32 * group; i < side; i += 32 * group)
          stage_group<group>(out + i * shared.row_step, from + i, inside && i < rows);
      }
    }
  }
};

/// fragment.sum += Σ_{k in [begin, end)} A(i, k) B(j, k) for the block's tile; k runs in order, from a
/// multiple of 4 where an operand lies along it. All threads of the block call it. Double
/// buffering: while one buffer is multiplied, the other is filled.
template <class Fragment, bool a_along_depth, bool b_along_depth>
__device__ inline void multiply_tile(const FloatTile& tile, std::int64_t begin, std::int64_t end,
                                     const FloatOperand<a_along_depth>& a,
                                     const FloatOperand<b_along_depth>& b, Fragment& fragment) {
  const StagedSide<Fragment, a_along_depth> side_a(a, static_cast<int>(tile.rows()));
  const StagedSide<Fragment, b_along_depth> side_b(b, static_cast<int>(tile.columns()));
  const std::int64_t numbers_a = tile.side_numbers(tile.rows());
  const std::int64_t numbers_b = tile.side_numbers(tile.columns());
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
    fragment.multiply(tile, shared_a + buffer * numbers_a, side_a.shared, shared_b + buffer * numbers_b,
                      side_b.shared);
    __syncthreads();
    buffer = 1 - buffer;
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
