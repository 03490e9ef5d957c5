#pragma once

#include <cstdint>

#include "cuda/ops/float_tile.h"
#include "cuda/runtime/launch.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Numbers that one instruction moves.
template <int count>
struct alignas(count * sizeof(float)) FloatGroup {
  float value[count];
};

/// A thread's numbers of a tile, and where they lie in it: each side's numbers come in groups of up to
/// four, with the other threads' groups between them, so that a warp's loads from shared memory are
/// contiguous.
template <int kRows, int kColumns>
struct FloatFragment {
  static constexpr int kRowGroup = kRows < 4 ? kRows : 4;
  static constexpr int kColumnGroup = kColumns < 4 ? kColumns : 4;

  float sum[kRows][kColumns] = {};

  __device__ static int row(const FloatTile& tile, int thread, int i) {
    return i / kRowGroup * (kRowGroup * tile.row_threads) + thread / tile.column_threads * kRowGroup +
           i % kRowGroup;
  }
  __device__ static int column(const FloatTile& tile, int thread, int j) {
    return j / kColumnGroup * (kColumnGroup * tile.column_threads) +
           thread % tile.column_threads * kColumnGroup + j % kColumnGroup;
  }
};

/// A matrix [rows × depth] as an operand, from row `first` on; along its depth or along its rows the
/// numbers are neighbours, the others `stride` apart.
template <bool along_depth>
struct FloatOperand {
  static constexpr bool kAlongDepth = along_depth;

  const float* values;
  std::int64_t stride;
  std::int64_t rows;
  std::int64_t depth;
  std::int64_t first;

  __device__ const float* operator()(int i, std::int64_t k) const {
    const std::int64_t row = first + i;
    if (row >= rows || k >= depth) return nullptr;
    return values + (along_depth ? row * stride + k : k * stride + row);
  }
};

/// Begins to copy numbers [0, side) × [first, first + kDepth) of an operand to `shared` [kDepth × stride].
/// `place(i, k)` is the address of a number, null for one outside, which counts as 0.
template <class Place>
__device__ inline void stage_operand(int side, std::int64_t first, int stride, const Place& place,
                                     float* shared) {
  constexpr int kDepth = static_cast<int>(FloatTile::kDepth);
  const int inner = Place::kAlongDepth ? kDepth : side;
  // Neighbouring threads read neighbouring numbers, whichever way the operand lies.
  int near = static_cast<int>(threadIdx.x) % inner;
  int far = static_cast<int>(threadIdx.x) / inner;
  for (int at = static_cast<int>(threadIdx.x); at < side * kDepth; at += static_cast<int>(blockDim.x)) {
    const int i = Place::kAlongDepth ? far : near;
    const int k = Place::kAlongDepth ? near : far;
    const float* from = place(i, first + k);
    float* to = shared + k * stride + i;
    if (from != nullptr) {
      copy_async(to, from);
    } else {
      *to = 0.0F;
    }
    for (near += static_cast<int>(blockDim.x); near >= inner; near -= inner) ++far;
  }
}

/// fragment.sum += Σ_{k in [begin, end)} A(i, k) B(j, k) for the block's tile; k runs in order. All threads
/// of the block call it. Two buffers: while one is multiplied, the other is filled.
template <int kRows, int kColumns, class PlaceA, class PlaceB>
__device__ inline void multiply_tile(const FloatTile& tile, std::int64_t begin, std::int64_t end,
                                     const PlaceA& a, const PlaceB& b,
                                     FloatFragment<kRows, kColumns>& fragment) {
  using Fragment = FloatFragment<kRows, kColumns>;
  using RowGroup = FloatGroup<Fragment::kRowGroup>;
  using ColumnGroup = FloatGroup<Fragment::kColumnGroup>;
  constexpr int kDepth = static_cast<int>(FloatTile::kDepth);
  const int rows = kRows * tile.row_threads;
  const int columns = kColumns * tile.column_threads;
  const int stride_a = (rows + 27) / 32 * 32 + 4;
  const int stride_b = (columns + 27) / 32 * 32 + 4;
  float* shared_a = dynamic_shared<float>();
  float* shared_b = shared_a + 2 * kDepth * stride_a;
  const int thread = static_cast<int>(threadIdx.x);
  const bool works = thread < tile.row_threads * tile.column_threads;
  const int row = works ? Fragment::row(tile, thread, 0) : 0;
  const int column = works ? Fragment::column(tile, thread, 0) : 0;

  const auto stage = [&](std::int64_t first, int buffer) {
    if (first < end) {
      stage_operand(rows, first, stride_a, a, shared_a + buffer * kDepth * stride_a);
      stage_operand(columns, first, stride_b, b, shared_b + buffer * kDepth * stride_b);
    }
    commit_copies();
  };
  int buffer = 0;
  stage(begin, buffer);
  for (std::int64_t first = begin; first < end; first += kDepth) {
    stage(first + kDepth, 1 - buffer);
    wait_for_copies<1>();
    __syncthreads();
    if (works) {
      const float* from_a = shared_a + buffer * kDepth * stride_a + row;
      const float* from_b = shared_b + buffer * kDepth * stride_b + column;
#pragma unroll 4
      for (int k = 0; k < kDepth; ++k) {
        RowGroup left[kRows / Fragment::kRowGroup];
        ColumnGroup right[kColumns / Fragment::kColumnGroup];
#pragma unroll
        for (int g = 0; g < kRows / Fragment::kRowGroup; ++g) {
          left[g] = *reinterpret_cast<const RowGroup*>(from_a + k * stride_a +
                                                       g * Fragment::kRowGroup * tile.row_threads);
        }
#pragma unroll
        for (int g = 0; g < kColumns / Fragment::kColumnGroup; ++g) {
          right[g] = *reinterpret_cast<const ColumnGroup*>(
              from_b + k * stride_b + g * Fragment::kColumnGroup * tile.column_threads);
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
#pragma unroll
          for (int j = 0; j < kColumns; ++j) {
            fragment.sum[i][j] += left[i / Fragment::kRowGroup].value[i % Fragment::kRowGroup] *
                                  right[j / Fragment::kColumnGroup].value[j % Fragment::kColumnGroup];
          }
        }
      }
    }
    __syncthreads();
    buffer = 1 - buffer;
  }
}

/// Calls body(row, column, value) for the thread's numbers of the tile.
template <int kRows, int kColumns, class Body>
__device__ inline void for_each_number(const FloatTile& tile,
                                       const FloatFragment<kRows, kColumns>& fragment, const Body& body) {
  using Fragment = FloatFragment<kRows, kColumns>;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread >= tile.row_threads * tile.column_threads) return;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      body(Fragment::row(tile, thread, i), Fragment::column(tile, thread, j), fragment.sum[i][j]);
    }
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
