#include "core/math/pair_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

TEST(ListLossMathTest, LogarithmKeepsItsPrecision) {
  RngStream coins(make_key({.seed = 36, .purpose = Purpose::kProbe}), 0);
  for (int draw = 0; draw < 200'000; ++draw) {
    const double x = draw % 2 == 0 ? coins.uniform() : std::pow(10.0, -300.0 * coins.uniform());
    const long double exact = std::log1p(static_cast<long double>(x));
    // A handful of roundings of half an ulp, 1.1e-16.
    ASSERT_TRUE(std::fabs(log1p_of_unit(x) - exact) <= 6e-16L * exact) << x;
  }
  EXPECT_EQ(log1p_of_unit(0.0), 0.0);
  EXPECT_TRUE(std::fabs(log1p_of_unit(1.0) - std::log(2.0)) <= 2e-16);
  EXPECT_TRUE(std::fabs(log1p_of_unit(std::sqrt(2.0) - 1.0) - 0.5 * std::log(2.0)) <= 2e-16);
}

TEST(ListLossMathTest, MisorderLossIsTheLogisticLoss) {
  for (double lead = -50.0; lead <= 50.0; lead += 0.37) {
    EXPECT_TRUE(std::fabs(misorder_loss(lead) - logistic_loss(-lead)) <= 1e-15 * logistic_loss(-lead))
        << lead;
  }
  EXPECT_EQ(misorder_loss(1e4), 1e4);
  EXPECT_EQ(misorder_loss(-1e4), 0.0);
}

TEST(ListLossMathTest, HingeHasItsKinkWhereThePairIsWonByOne) {
  EXPECT_EQ(hinge_loss(-1.5), 0.0);
  EXPECT_EQ(hinge_loss(-1.0), 0.0);
  EXPECT_EQ(hinge_slope(-1.0), 0.0);
  EXPECT_EQ(hinge_loss(0.5), 1.5);
  EXPECT_EQ(hinge_slope(-0.5), 1.0);
}

}  // namespace
}  // namespace olrank
