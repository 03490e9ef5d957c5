#include "report/plot.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace olrank {
namespace {

std::vector<std::string> labels(const Scale& scale, int wanted = 5) {
  std::vector<std::string> found;
  for (const Tick& tick : scale.ticks(wanted)) found.push_back(tick.label);
  return found;
}

using Labels = std::vector<std::string>;

TEST(Ticks, AreRoundValuesWithinTheRange) {
  EXPECT_EQ(labels({0.0, 1000.0, 0.0, 1.0}, 4), (Labels{"0", "500", "1,000"}));
  EXPECT_EQ(labels({0.13, 0.47, 0.0, 1.0}), (Labels{"0.2", "0.3", "0.4"}));
  EXPECT_EQ(labels({-0.1, 0.1, 0.0, 1.0}, 4), (Labels{"−0.10", "−0.05", "0", "0.05", "0.10"}));
  EXPECT_EQ(labels({0.0, 2.5e6, 0.0, 1.0}), (Labels{"0", "500k", "1M", "1.5M", "2M", "2.5M"}));
  EXPECT_EQ(labels({0.9982, 0.9991, 0.0, 1.0}, 4), (Labels{"0.9985", "0.9990"}));
}

TEST(Ticks, ArePowersOfTenOnLogarithmicAxes) {
  EXPECT_EQ(labels({0.5, 200.0, 0.0, 1.0, true}),
            (Labels{"0.5", "1", "2", "5", "10", "20", "50", "100", "200"}));
  EXPECT_EQ(labels({0.5, 2e4, 0.0, 1.0, true}), (Labels{"1", "10", "100", "1,000", "10k"}));
}

TEST(Scale, MapsEndsToEnds) {
  const Scale plain(2.0, 4.0, 100.0, 0.0);
  EXPECT_DOUBLE_EQ(plain(2.0), 100.0);
  EXPECT_DOUBLE_EQ(plain(3.0), 50.0);
  const Scale logarithmic(1.0, 100.0, 0.0, 10.0, true);
  EXPECT_DOUBLE_EQ(logarithmic(10.0), 5.0);
}

}  // namespace
}  // namespace olrank
