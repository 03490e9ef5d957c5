#include "core/math/normal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace olrank {
namespace {

TEST(PortableLogTest, IsWithinTwoUnitsOfTheLastPlaceOfLibm) {
  for (int exponent = -300; exponent <= 300; exponent += 7) {
    for (double mantissa = 1.0; mantissa < 2.0; mantissa += 0.0137) {
      const double x = std::ldexp(mantissa, exponent);
      const double expected = std::log(x);
      // Near 1 the logarithm's own size is the scale; each of a dozen roundings is at most half a unit.
      const double tolerance = 4.5e-16 * std::abs(expected) + 1e-18;
      EXPECT_TRUE(std::abs(portable_log(x) - expected) <= tolerance) << x;
    }
  }
  EXPECT_EQ(portable_log(1.0), 0.0);
}

// Φ by the complementary error function of libm, which is accurate to the last places in both tails.
double normal_distribution(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

TEST(NormalQuantileTest, InvertsTheDistributionFunction) {
  for (double exponent = -300.0; exponent < -0.301; exponent += 0.37) {
    const double u = std::pow(10.0, exponent);
    const double x = normal_quantile(u);
    // dΦ/Φ = x φ/Φ dx/x grows like x² in the tail: relative 1e-15 in x is up to 1.4e-12 in u here.
    const double tolerance = u * (4e-15 + 1.5e-15 * x * x);
    EXPECT_TRUE(std::abs(normal_distribution(x) - u) <= tolerance) << u;
  }
}

TEST(NormalQuantileTest, GivesTabulatedPercentagePoints) {
  EXPECT_EQ(normal_quantile(0.5), 0.0);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 2e-15);
  EXPECT_NEAR(normal_quantile(0.75), 0.6744897501960817, 1e-15);
  EXPECT_NEAR(normal_quantile(0.001), -3.090232306167813, 4e-15);
  EXPECT_NEAR(normal_quantile(1e-20), -9.262340089798408, 1e-14);
}

TEST(NormalQuantileTest, IsOdd) {
  // u and 1 − u are both exact for multiples of 2^-20.
  for (int i = 1; i < 1 << 19; i += 997) {
    const double u = std::ldexp(i, -20);
    EXPECT_EQ(normal_quantile(u), -normal_quantile(1.0 - u));
  }
}

}  // namespace
}  // namespace olrank
