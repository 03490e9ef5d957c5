#include "core/math/portable_exp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random/rng_stream.h"
#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

bool close(double value, long double exact, long double relative) {
  return std::fabs(static_cast<long double>(value) - exact) <= relative * std::fabs(exact);
}

TEST(PortableExpTest, KeepsItsPromisedError) {
  RngStream coins(make_key({.seed = 35, .purpose = Purpose::kProbe}), 0);
  double worst = 0.0;
  for (int draw = 0; draw < 400'000; ++draw) {
    // Every scale from 10⁻³⁰⁰ to 708, and every place between whole multiples of ln 2.
    const double x = draw % 4 == 0   ? -std::pow(10.0, -300.0 * coins.uniform())
                     : draw % 4 == 1 ? -708.0 * coins.uniform()
                     : draw % 4 == 2
                         ? -40.0 * coins.uniform()
                         : -std::log(2.0) * (0.5 + coins.index(1000)) * (1.0 + 1e-13 * coins.normal());
    const long double exact = std::exp(static_cast<long double>(x));
    const double value = portable_exp_nonpositive(x);
    const auto relative = static_cast<double>(std::fabs(value / exact - 1.0L));
    ASSERT_TRUE(relative <= 3e-16 * (1.0 + std::fabs(x) / 700.0)) << x << ": " << relative;
    ASSERT_TRUE(close(value, std::exp(x), 1e-15L)) << x;
    worst = std::max(worst, relative);
  }
  EXPECT_GT(worst, 1e-17);  // the comparison looks at more than equal numbers
}

TEST(PortableExpTest, Edges) {
  EXPECT_EQ(portable_exp_nonpositive(0.0), 1.0);
  EXPECT_EQ(portable_exp_nonpositive(-0.0), 1.0);
  EXPECT_EQ(portable_exp_nonpositive(-std::numeric_limits<double>::denorm_min()), 1.0);
  EXPECT_GT(portable_exp_nonpositive(-708.0), 0.0);
  EXPECT_TRUE(close(portable_exp_nonpositive(-708.0), std::exp(-708.0L), 1e-15L));
  EXPECT_EQ(portable_exp_nonpositive(std::nextafter(-708.0, -kInfinity)), 0.0);
  EXPECT_EQ(portable_exp_nonpositive(-1e308), 0.0);
  EXPECT_EQ(portable_exp_nonpositive(-kInfinity), 0.0);
  EXPECT_TRUE(std::isnan(portable_exp_nonpositive(std::numeric_limits<double>::quiet_NaN())));
}

TEST(PortableExpTest, NeverRises) {
  double last = portable_exp_nonpositive(0.0);
  for (int step = 1; step <= 200'000; ++step) {
    const double value = portable_exp_nonpositive(-708.5 * step / 200'000.0);
    ASSERT_LE(value, last) << step;
    last = value;
  }
  EXPECT_EQ(last, 0.0);
}

}  // namespace
}  // namespace olrank
