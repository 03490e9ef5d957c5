#pragma once

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

/// The tile that should take a product the shortest time; `copies` counts products side by side. 8 × 8
/// numbers a thread have the best ratio of arithmetic to loads, 4 × 8 and 2 × 4 spread little work over
/// more of the device. A choice changes no bit of a product, whose every number is its own sum in order.
FloatTile choose_float_tile(std::int64_t rows, std::int64_t columns, std::int64_t copies);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
