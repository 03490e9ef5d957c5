#pragma once

#include <cstdint>

#include "cuda/runtime/launch.cuh"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// How a symmetric matrix in double, of which the lower triangle is stored, changes by qᵀq.
struct RankUpdate {
  static constexpr unsigned kThreads = 256;
  static constexpr int kSide = 64;
  static constexpr int kRowsOfQ = 32;  // at a time in shared memory
  static constexpr std::size_t kSharedBytes = 2UL * kRowsOfQ * kSide * sizeof(double);

  static dim3 grid(std::int64_t n) {
    const auto tiles = static_cast<unsigned>((n + kSide - 1) / kSide);
    return {tiles, tiles};
  }
};

// a [n × n] ← a ± qᵀq with q [count × n], count > 0. Grid: tiles of columns, tiles of rows; those above the
// diagonal return. A block owns a tile [64 × 64], a thread 16 numbers of a column; q's part lies in shared
// memory. Double; deterministic.
template <bool subtract>
static __device__ void rank_update(std::int64_t n, const double* q, std::int64_t count, double* a) {
  if (blockIdx.x > blockIdx.y) return;
  constexpr int kSide = RankUpdate::kSide;
  constexpr int kRowsAtATime = static_cast<int>(RankUpdate::kThreads) / kSide;
  constexpr int kHeld = kSide / kRowsAtATime;
  auto* of_rows = dynamic_shared<double>();
  double* of_columns = of_rows + RankUpdate::kRowsOfQ * kSide;
  const std::int64_t row = std::int64_t{blockIdx.y} * kSide;
  const std::int64_t column = std::int64_t{blockIdx.x} * kSide;
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
#pragma unroll
  for (int e = 0; e < kHeld; ++e) {
    if (!inside(row + far + kRowsAtATime * e)) continue;
    numbers[kRowsAtATime * e * n] = subtract ? before[e] - sums[e] : before[e] + sums[e];
  }
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
