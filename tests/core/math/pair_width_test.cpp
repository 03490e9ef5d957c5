#include "core/math/pair_width.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

TEST(PairWidthTest, ReportsRoundingAndLostDigits) {
  const PairWidth equal = pair_width(2.0, 2.0, 2.0);
  EXPECT_EQ(equal.squared, 0.0);
  EXPECT_FALSE(equal.negative);
  EXPECT_FALSE(equal.lost);
  const PairWidth rounded = pair_width(1.0, 1.0, 1.0 + 1e-12);
  EXPECT_EQ(rounded.squared, 0.0);
  EXPECT_TRUE(rounded.negative);
  EXPECT_FALSE(rounded.lost);
  const PairWidth lost = pair_width(1.0, 1.0, 1.1);
  EXPECT_EQ(lost.squared, 0.0);
  EXPECT_TRUE(lost.negative);
  EXPECT_TRUE(lost.lost);
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    const PairWidth width = pair_width(1.0, bad, 0.5);
    EXPECT_EQ(width.squared, 0.0);
    EXPECT_TRUE(width.lost);
  }
  EXPECT_TRUE(pair_width(kInfinity, kInfinity, kInfinity).lost);
  EXPECT_EQ(pair_width(1e300, 1e300, -1e300).squared, 4e300);
}

TEST(PairWidthTest, AVarianceIsLostWhenFarBelowZero) {
  EXPECT_FALSE(is_lost_variance(0.0, 0.0));
  EXPECT_FALSE(is_lost_variance(-1e-7, 1.0));
  EXPECT_FALSE(is_lost_variance(-1e-6, 1.0));
  EXPECT_TRUE(is_lost_variance(-1e-5, 1.0));
  EXPECT_TRUE(is_lost_variance(-1e-300, 0.0));
  EXPECT_TRUE(is_lost_variance(kNan, 1.0));
}

TEST(PairWidthTest, TheProductOfAPairWithItselfIsItsSquaredWidth) {
  EXPECT_EQ(pair_product(3.0, 0.5, 0.5, 2.0), pair_width(3.0, 2.0, 0.5).squared);
  EXPECT_EQ(pair_product(1.0, 1.0, 1.0, 1.0), 0.0);
  EXPECT_EQ(pair_product(1.0, 2.0, 4.0, 8.0), 3.0);
}

}  // namespace
}  // namespace olrank
