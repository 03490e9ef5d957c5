#include "core/ops/pair_width.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace olrank {
namespace {

TEST(PairWidthTest, ReadsTheLowerTriangleAndIsSymmetric) {
  ExecutionContext context;
  const std::vector<double> m = {2.0, 99.0, 99.0, 0.5, 3.0, 99.0, -1.0, 0.25, 4.0};
  std::vector<double> width_sq(9, -1.0);
  const WidthHealth health = pair_width_sq(context, 3, m.data(), width_sq.data());
  EXPECT_EQ(width_sq, (std::vector<double>{0.0, 4.0, 8.0, 4.0, 0.0, 6.5, 8.0, 6.5, 0.0}));
  EXPECT_EQ(health.negative, 0);
  EXPECT_EQ(health.lost, 0);
  std::vector<double> in_place = m;
  pair_width_sq(context, 3, in_place.data(), in_place.data());
  EXPECT_EQ(in_place, width_sq);
  pair_width_sq(context, 0, nullptr, nullptr);
}

TEST(PairWidthTest, DistancesKeepTheirDigits) {
  for (const std::int64_t rows : {0, 1, 2, 31, 33}) {
    const std::int64_t columns = 7;
    std::vector<double> h(rows * columns);
    for (std::int64_t i = 0; i < rows; ++i) {
      // The last column is what all have in common; every third row differs from the one before by little.
      for (std::int64_t c = 0; c < columns; ++c)
        h[i * columns + c] =
            c + 1 == columns ? 1e4 : std::sin(static_cast<double>(5 * (i - (i % 3) / 2) + c));
      if (i % 3 == 2) h[i * columns] += 1e-7;
    }
    std::vector<double> distance_sq(rows * rows, -1.0);
    row_distance_sq(rows, columns, h.data(), distance_sq.data());
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < rows; ++j) {
        double expected = 0.0;
        for (std::int64_t c = 0; c < columns; ++c)
          expected += std::pow(h[i * columns + c] - h[j * columns + c], 2.0);
        // Norms of 10⁸ with rounding of 10⁻⁸, where distances are above 10².
        EXPECT_NEAR(distance_sq[i * rows + j], expected, 1e-9 * expected) << i << ", " << j;
        EXPECT_EQ(distance_sq[i * rows + j], distance_sq[j * rows + i]);
      }
    }
  }
}

TEST(PairWidthTest, DistinguishesRoundingFromLostDigits) {
  ExecutionContext context;
  std::vector<double> width_sq(4);
  const auto health_of = [&](double own, double other, double product) {
    const std::vector<double> m = {own, 0.0, product, other};
    const WidthHealth health = pair_width_sq(context, 2, m.data(), width_sq.data());
    EXPECT_GE(width_sq[1], 0.0);
    return health;
  };
  EXPECT_EQ(health_of(1.0, 1.0, 1.0 + 1e-12).negative, 1);
  EXPECT_EQ(health_of(1.0, 1.0, 1.0 + 1e-12).lost, 0);
  EXPECT_EQ(health_of(1.0, 1.0, 1.1).lost, 1);
  EXPECT_EQ(health_of(1.0, -0.1, 0.0).lost, 1);
  EXPECT_GT(health_of(1.0, std::numeric_limits<double>::quiet_NaN(), 0.0).lost, 0);
  EXPECT_GT(health_of(1.0, std::numeric_limits<double>::infinity(), 0.0).lost, 0);
  EXPECT_GT(health_of(1.0, 1.0, std::numeric_limits<double>::quiet_NaN()).lost, 0);
  EXPECT_GT(health_of(std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity(),
                      std::numeric_limits<double>::infinity())
                .lost,
            0);
}

}  // namespace
}  // namespace olrank
