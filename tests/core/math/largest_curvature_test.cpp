#include "core/math/optimizer_step.h"

#include <gtest/gtest.h>

#include <limits>

namespace olrank {
namespace {

TEST(LargestCurvatureRuleTest, SettlesWhenTheQuotientStopsGrowing) {
  EXPECT_FALSE(has_settled(0, 0.0, 0.0, 1e-3));  // the first quotient has nothing to compare with
  EXPECT_FALSE(has_settled(1, 1.0, 0.0, 1e-3));
  EXPECT_FALSE(has_settled(1, 1.01, 1.0, 1e-3));
  EXPECT_TRUE(has_settled(1, 1.0005, 1.0, 1e-3));
  EXPECT_TRUE(has_settled(7, 1.0, 1.0, 0.0));
  EXPECT_TRUE(has_settled(7, 0.99, 1.0, 0.0));
  EXPECT_TRUE(has_settled(1, 0.0, 0.0, 1e-3));  // all gradients are zero
  EXPECT_FALSE(has_settled(3, std::numeric_limits<double>::quiet_NaN(), 1.0, 1e-3));
}

TEST(LargestCurvatureRuleTest, IsAQuarterOfTheQuotient) {
  EXPECT_EQ(curvature_of(0.0), 0.0);
  EXPECT_EQ(curvature_of(6.0), 1.5);
}

}  // namespace
}  // namespace olrank
