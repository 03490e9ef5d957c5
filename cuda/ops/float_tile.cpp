#include "cuda/ops/float_tile.h"

#include <algorithm>
#include <limits>

namespace olrank::OLRANK_DEVICE_NAMESPACE {
namespace {

// What times are estimated for: multiprocessors of a large device, with four schedulers each.
constexpr std::int64_t kMultiprocessors = 132;
constexpr std::int64_t kSchedulers = 4;
// A lone warp of a scheduler waits for its own loads.
constexpr double kAloneFactor = 1.3;
constexpr std::int64_t kMostRowThreads = 24;  // shared memory without asking for more

/// A thread's share, the threads along its columns, and its cost beside the arithmetic alone.
struct Share {
  std::int32_t rows;
  std::int32_t columns;
  std::int64_t most_column_threads;
  double cost;
};
constexpr Share kShares[] = {{8, 8, 17, 1.1}, {4, 8, 17, 1.25}, {2, 4, 32, 2.5}};

std::int64_t parts_of(std::int64_t n, std::int64_t part) {
  return (n + part - 1) / part;
}

/// Threads along a side of n numbers, so that its tiles are even.
std::int64_t even_threads(std::int64_t n, std::int64_t share, std::int64_t most) {
  const std::int64_t threads = std::max<std::int64_t>(1, parts_of(n, share));
  return parts_of(threads, parts_of(threads, most));
}

double estimated_time(const FloatTile& tile, double cost, std::int64_t rows, std::int64_t columns,
                      std::int64_t copies) {
  const std::int64_t blocks = tile.row_tiles(rows) * tile.column_tiles(columns) * copies;
  const std::int64_t warps = parts_of(blocks, kMultiprocessors) * (tile.threads() / 32);
  const std::int64_t turns = parts_of(warps, kSchedulers);
  const double numbers = static_cast<double>(tile.thread_rows) * tile.thread_columns;
  return static_cast<double>(turns) * numbers * cost * (turns == 1 ? kAloneFactor : 1.0);
}

}  // namespace

FloatTile choose_float_tile(std::int64_t rows, std::int64_t columns, std::int64_t copies) {
  FloatTile best;
  double least = std::numeric_limits<double>::infinity();
  for (const Share& share : kShares) {
    FloatTile tile;
    tile.thread_rows = share.rows;
    tile.thread_columns = share.columns;
    const std::int64_t across = even_threads(columns, share.columns, share.most_column_threads);
    tile.column_threads = static_cast<std::int32_t>(across);
    const std::int64_t most =
        even_threads(rows, share.rows, std::min(kMostRowThreads, FloatTile::kMostThreads / across));
    for (std::int64_t down = most; down > 0; --down) {
      tile.row_threads = static_cast<std::int32_t>(down);
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
