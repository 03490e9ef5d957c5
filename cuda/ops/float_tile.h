#pragma once

#include <cstddef>
#include <cstdint>

#include "core/math/portable_exp.h"
#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// How a block computes a tile of C [rows × columns] = Σ_k A(i, k) B(j, k) in float32. A share of
/// share_rows × share_columns numbers of C belongs to one thread, and a block has row_shares ×
/// column_shares of them. Tile sides fit the matrix, so that m = 100 and d = 136
/// make one full tile instead of two half-empty ones.
struct FloatTile {
  static constexpr std::int64_t kDepth = 16;  // values of k in shared memory at a time
  static constexpr std::int64_t kMostThreads = 256;

  std::int32_t share_rows = 8;
  std::int32_t share_columns = 8;
  std::int32_t row_shares = 1;
  std::int32_t column_shares = 1;

  OLRANK_HOST_DEVICE std::int64_t rows() const { return std::int64_t{share_rows} * row_shares; }
  OLRANK_HOST_DEVICE std::int64_t columns() const { return std::int64_t{share_columns} * column_shares; }
  std::int64_t threads() const { return (std::int64_t{row_shares} * column_shares + 31) / 32 * 32; }
  std::int64_t row_tiles(std::int64_t n) const { return (n + rows() - 1) / rows(); }
  std::int64_t column_tiles(std::int64_t n) const { return (n + columns() - 1) / columns(); }
  /// Two buffers of both sides.
  std::size_t shared_bytes() const {
    return static_cast<std::size_t>(2 * (side_numbers(rows()) + side_numbers(columns()))) * sizeof(float);
  }
  /// Numbers of one side in shared memory, for kDepth values of k.
  OLRANK_HOST_DEVICE static std::int64_t side_numbers(std::int64_t side) { return kDepth * stride(side); }
  /// Distance between values of k of a side: 4 more than a multiple of 32, so that a warp's
  /// stores have at most two-way bank conflicts, and 16-byte loads stay aligned.
  OLRANK_HOST_DEVICE static std::int64_t stride(std::int64_t side) { return (side + 27) / 32 * 32 + 4; }
};

/// The tile with the shortest estimated time for `copies` products side by side. 8 × 8 numbers
/// per thread have the best ratio of arithmetic to loads; 4 × 8 and 2 × 4 spread little work over more of
/// the device. The choice does not change the bits: every number is a sum in a fixed
/// order.
FloatTile choose_float_tile(std::int64_t rows, std::int64_t columns, std::int64_t copies);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
