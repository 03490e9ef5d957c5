#include "core/ops/pair_width.h"

#include <gtest/gtest.h>

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
