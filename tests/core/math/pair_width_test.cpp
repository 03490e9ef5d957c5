#include "core/math/pair_width.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random/rng_stream.h"
#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

// M from two gradients of three numbers and a diagonal A⁻¹.
TEST(PairWidthTest, MatchesLongDoubleFormula) {
  RngStream draws(make_key({.seed = 43, .purpose = Purpose::kProbe}), 0);
  for (int draw = 0; draw < 10'000; ++draw) {
    long double m_ii = 0.0L;
    long double m_jj = 0.0L;
    long double m_ij = 0.0L;
    long double exact = 0.0L;
    for (int k = 0; k < 3; ++k) {
      const long double a = draws.uniform();
      const long double g = draws.normal();
      const long double h = draws.normal();
      m_ii += a * g * g;
      m_jj += a * h * h;
      m_ij += a * g * h;
      exact += a * (g - h) * (g - h);
    }
    const PairWidth width =
        pair_width(static_cast<double>(m_ii), static_cast<double>(m_jj), static_cast<double>(m_ij));
    EXPECT_TRUE(std::fabs(width.squared - exact) <= 1e-15L * (m_ii + m_jj)) << draw;
    EXPECT_FALSE(width.lost);
  }
}

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
