#include "cuda/ops/float_tile.h"

#include <algorithm>
#include <limits>

#include "cuda/runtime/stream.h"

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

// The device that times are estimated for: a large one, with four schedulers per multiprocessor.
constexpr std::int64_t kMultiprocessors = 132;
constexpr std::int64_t kSchedulers = 4;
// A scheduler with a single warp waits for that warp's loads.
constexpr double kAloneFactor = 1.3;

/// A share, the most of them along each side, and its cost relative to the bare arithmetic.
struct Share {
  std::int32_t rows;
  std::int32_t columns;
  std::int64_t most_rows;  // within the default limit of shared memory
  std::int64_t most_columns;
  double cost;
};
constexpr Share kShares[] = {{8, 8, 24, 17, 1.1}, {4, 8, 24, 17, 1.25}, {2, 4, 24, 32, 2.5}};

/// Shares per tile along a side of n numbers, for tiles of equal size.
std::int64_t even_shares(std::int64_t n, std::int64_t share, std::int64_t most) {
  const std::int64_t shares = std::max<std::int64_t>(1, parts_of(n, share));
  return parts_of(shares, parts_of(shares, most));
}

double estimated_time(const FloatTile& tile, double cost, std::int64_t rows, std::int64_t columns,
                      std::int64_t copies) {
  const std::int64_t blocks = tile.row_tiles(rows) * tile.column_tiles(columns) * copies;
  const std::int64_t warps = parts_of(blocks, kMultiprocessors) * (tile.threads() / 32);
  const std::int64_t turns = parts_of(warps, kSchedulers);
  const double numbers = static_cast<double>(tile.share_rows) * tile.share_columns;
  return static_cast<double>(turns) * numbers * cost * (turns == 1 ? kAloneFactor : 1.0);
}

}  // namespace

FloatTile choose_float_tile(std::int64_t rows, std::int64_t columns, std::int64_t copies) {
  FloatTile best;
  double least = std::numeric_limits<double>::infinity();
  for (const Share& share : kShares) {
    FloatTile tile{share.rows, share.columns};
    const std::int64_t across = even_shares(columns, share.columns, share.most_columns);
    tile.column_shares = static_cast<std::int32_t>(across);
    const std::int64_t room = FloatTile::kMostThreads / across;
    const std::int64_t most = even_shares(rows, share.rows, std::min(share.most_rows, room));
    for (std::int64_t down = most; down > 0; --down) {
      tile.row_shares = static_cast<std::int32_t>(down);
      const double time = estimated_time(tile, share.cost, rows, columns, copies);
      if (time < least) {
        least = time;
        best = tile;
      }
    }
  }
  return best;
}

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
