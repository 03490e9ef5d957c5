#include "cuda/ops/float_tile.h"

#include <gtest/gtest.h>

namespace olrank {
namespace {

namespace device = OLRANK_DEVICE_NAMESPACE;
using device::choose_float_tile;
using device::FloatTile;

TEST(FloatTileTest, TilesStayWithinTheirLimits) {
  for (const std::int64_t rows : {0, 1, 8, 9, 125, 1000, 10'000, 300'000}) {
    for (const std::int64_t columns : {1, 7, 16, 100, 136, 137, 700, 1024}) {
      for (const std::int64_t copies : {1, 10, 128}) {
        const FloatTile tile = choose_float_tile(rows, columns, copies);
        EXPECT_LE(tile.threads(), FloatTile::kMostThreads);
        EXPECT_GE(tile.row_shares * tile.column_shares, 1);
        EXPECT_EQ(tile.threads() % 32, 0);
        EXPECT_GE(FloatTile::side_numbers(tile.rows()), FloatTile::kDepth * tile.rows());
        EXPECT_GE(FloatTile::side_numbers(tile.columns()), FloatTile::kDepth * tile.columns());
        EXPECT_LE(tile.shared_bytes(), 48U * 1024U);
        EXPECT_GE(tile.row_tiles(rows) * tile.rows(), rows);
        EXPECT_GE(tile.column_tiles(columns) * tile.columns(), columns);
      }
    }
  }
}

TEST(FloatTileTest, ChoosesLargeTilesForMuchWorkAndSmallOnesForLittle) {
  const FloatTile much = choose_float_tile(100'000, 100, 1);
  EXPECT_EQ(much.share_rows, 8);
  EXPECT_EQ(much.columns(), 104);
  const FloatTile little = choose_float_tile(125, 100, 1);
  EXPECT_EQ(little.share_rows, 2);
  EXPECT_GE(little.row_tiles(125) * little.column_tiles(100), 8);
}

}  // namespace
}  // namespace olrank
