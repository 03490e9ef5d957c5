#pragma once

#include <cstdint>

#include "cuda/runtime/grid.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// How a symmetric matrix in double changes by qᵀq: its lower triangle alone, or the upper one too.
struct RankUpdate {
  enum Kind { kAddToLower, kSubtractFromBoth };

  static constexpr unsigned kThreads = 256;
  static constexpr int kSide = 64;
  static constexpr int kRowsOfQ = 32;              // at a time in shared memory
  static constexpr int kMirrorStride = kSide + 1;  // a column of a tile falls into all banks
  static constexpr std::size_t kSharedBytes = std::size_t{kSide} * kMirrorStride * sizeof(double);
  static_assert(kMirrorStride > 2 * kRowsOfQ);

  static dim3 grid(std::int64_t n) {
    const auto tiles = static_cast<unsigned>((n + kSide - 1) / kSide);
    return {tiles, tiles};
  }
};

// Writes the mirror image of a tile [64 × 64] of the lower triangle, which the block's threads have put
// into shared memory.
static __device__ void write_mirror(std::int64_t n, std::int64_t row, std::int64_t column,
                                    const double* tile, double* a) {
  constexpr int kSide = RankUpdate::kSide;
  const int near = static_cast<int>(threadIdx.x) % kSide;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x) / kSide; i < kSide;
       i += static_cast<int>(RankUpdate::kThreads) / kSide) {
    if (row + near < n && column + i < row + near)
      a[(column + i) * n + row + near] = tile[near * RankUpdate::kMirrorStride + i];
  }
}

// a [n × n] ← a ± qᵀq with q [count × n], count > 0; the lower triangle is read. Grid: tiles of columns,
// tiles of rows; those above the diagonal return. A block owns a tile [64 × 64] and its mirror image, a
// thread 16 numbers of a column; q's part lies in shared memory, then the tile. Double; deterministic.
template <RankUpdate::Kind kind>
static __device__ void rank_update(const Grid& grid, std::int64_t n, const double* q, std::int64_t count,
                                   double* a) {
  if (grid.block.x > grid.block.y) return;
  constexpr int kSide = RankUpdate::kSide;
  constexpr int kRowsAtATime = static_cast<int>(RankUpdate::kThreads) / kSide;
  constexpr int kHeld = kSide / kRowsAtATime;
  auto* of_rows = dynamic_shared<double>();
  double* of_columns = of_rows + RankUpdate::kRowsOfQ * kSide;
  const std::int64_t row = std::int64_t{grid.block.y} * kSide;
  const std::int64_t column = std::int64_t{grid.block.x} * kSide;
  const int near = static_cast<int>(threadIdx.x) % kSide;
  const int far = static_cast<int>(threadIdx.x) / kSide;
  // The matrix is read first and arrives while q is. No load depends on a branch: what lies outside reads
  // q.
  const auto inside = [&](std::int64_t i) { return i < n && column + near <= i; };
  double* numbers = a + (row + far) * n + column + near;
  double before[kHeld];
#pragma unroll
  for (int e = 0; e < kHeld; ++e)
    before[e] = *(inside(row + far + kRowsAtATime * e) ? numbers + kRowsAtATime * e * n : q);
  double sums[kHeld] = {};
  for (std::int64_t first = 0; first < count; first += RankUpdate::kRowsOfQ) {
    const int rows = static_cast<int>(min(std::int64_t{RankUpdate::kRowsOfQ}, count - first));
    __syncthreads();
    for (int s = far; s < rows; s += kRowsAtATime) {
      const double* of_q = q + (first + s) * n;
      of_rows[s * kSide + near] = row + near < n ? of_q[row + near] : 0.0;
      of_columns[s * kSide + near] = column + near < n ? of_q[column + near] : 0.0;
    }
    __syncthreads();
    for (int s = 0; s < rows; ++s) {
      const double factor = of_columns[s * kSide + near];
#pragma unroll
      for (int e = 0; e < kHeld; ++e) sums[e] += of_rows[s * kSide + far + kRowsAtATime * e] * factor;
    }
  }
  auto* tile = dynamic_shared<double>();
  if (kind == RankUpdate::kSubtractFromBoth) __syncthreads();  // q's part has been read
#pragma unroll
  for (int e = 0; e < kHeld; ++e) {
    const int i = far + kRowsAtATime * e;
    const double number = kind == RankUpdate::kAddToLower ? before[e] + sums[e] : before[e] - sums[e];
    if (inside(row + i)) numbers[kRowsAtATime * e * n] = number;
    if (kind == RankUpdate::kSubtractFromBoth) tile[i * RankUpdate::kMirrorStride + near] = number;
  }
  if (kind == RankUpdate::kSubtractFromBoth) write_mirror(n, row, column, tile, a);
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
