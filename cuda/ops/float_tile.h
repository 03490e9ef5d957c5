#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// How a block computes a tile of C [rows × columns] = Σ_k A(i, k) B(j, k) in float32: each thread holds
/// thread_rows × thread_columns numbers of C in registers, and its block row_threads × column_threads
/// threads. Sides are cut to the matrix, so that m = 100 and d = 136 make one full tile, not two half empty
/// ones.
struct FloatTile {
  static constexpr std::int64_t kDepth = 16;  // k's in shared memory at a time
  static constexpr std::int64_t kMostThreads = 256;
  static constexpr std::int64_t kMostSide = 17;  // threads along a side: 136 rows of 8

  std::int32_t thread_rows = 8;
  std::int32_t thread_columns = 8;
  std::int32_t row_threads = 1;
  std::int32_t column_threads = 1;

  std::int64_t rows() const { return std::int64_t{thread_rows} * row_threads; }
  std::int64_t columns() const { return std::int64_t{thread_columns} * column_threads; }
  std::int64_t threads() const { return (std::int64_t{row_threads} * column_threads + 31) / 32 * 32; }
  std::int64_t row_tiles(std::int64_t n) const { return (n + rows() - 1) / rows(); }
  std::int64_t column_tiles(std::int64_t n) const { return (n + columns() - 1) / columns(); }
  /// Numbers between the k's of a side in shared memory: 4 more than a multiple of 32, so that a warp's
  /// stores meet in a bank at most two by two, and 16-byte loads stay aligned.
  static std::int64_t stride(std::int64_t side) { return (side + 27) / 32 * 32 + 4; }
  std::size_t shared_bytes() const {
    return static_cast<std::size_t>(2 * kDepth * (stride(rows()) + stride(columns()))) * sizeof(float);
  }
};

/// The tile for a product: 8 × 8 numbers a thread where that fills the device, with its best ratio of
/// arithmetic to loads; 2 × 4 where few documents would leave most of it idle. `copies` counts products
/// side by side.
inline FloatTile choose_float_tile(std::int64_t rows, std::int64_t columns, std::int64_t copies) {
  constexpr std::int64_t kEnoughBlocks = 96;
  const auto fit = [&](std::int64_t thread_rows, std::int64_t thread_columns) {
    const auto even = [](std::int64_t n, std::int64_t part, std::int64_t most) {
      const std::int64_t parts = (n + part - 1) / part;
      const std::int64_t tiles = (parts + most - 1) / most;
      return std::max<std::int64_t>(1, (parts + tiles - 1) / std::max<std::int64_t>(1, tiles));
    };
    FloatTile tile;
    tile.thread_rows = static_cast<std::int32_t>(thread_rows);
    tile.thread_columns = static_cast<std::int32_t>(thread_columns);
    const std::int64_t across =
        even(columns, thread_columns, thread_columns == 8 ? FloatTile::kMostSide : 32);
    const std::int64_t down = std::min(FloatTile::kMostThreads / across, FloatTile::kMostSide);
    tile.column_threads = static_cast<std::int32_t>(across);
    tile.row_threads = static_cast<std::int32_t>(even(rows, thread_rows, down));
    return tile;
  };
  const FloatTile large = fit(8, 8);
  if (large.row_tiles(rows) * large.column_tiles(columns) * copies >= kEnoughBlocks) return large;
  FloatTile small = fit(2, 4);
  while (small.row_threads > 4 &&
         small.row_tiles(rows) * small.column_tiles(columns) * copies < kEnoughBlocks) {
    small.row_threads = (small.row_threads + 1) / 2;
  }
  return small;
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
