#include "core/covariance/block_probes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace olrank {
namespace {

TEST(BlockProbesTest, DirectionsAreUnitVectorsOfEachBlock) {
  const std::vector<std::int64_t> sizes = {3, 1, 5};
  const std::vector<double> all = block_directions(sizes);
  ASSERT_EQ(std::ssize(all), kBlockProbes * 9);
  EXPECT_EQ(block_directions(sizes), all) << "always the same";
  std::size_t at = 0;
  for (std::int64_t probe = 0; probe < kBlockProbes; ++probe) {
    for (const std::int64_t size : sizes) {
      double square = 0.0;
      for (std::int64_t k = 0; k < size; ++k, ++at) square += all[at] * all[at];
      EXPECT_NEAR(square, 1.0, 1e-14);
    }
  }
  EXPECT_NE(all[0], all[9]) << "probes differ";
}

TEST(BlockProbesTest, TheWorstErrorCounts) {
  const std::vector<double> expected = {2.0, 4.0, 1.0};
  EXPECT_EQ(worst_of_energies(expected, expected), 0.0);
  EXPECT_EQ(worst_of_energies(std::vector<double>{2.5, 3.0, 1.125}, expected), 0.25);
  EXPECT_TRUE(std::isnan(worst_of_energies(std::vector<double>{2.5, std::nan(""), 1.0}, expected)));
  EXPECT_EQ(
      worst_of_energies(std::vector<double>{std::numeric_limits<double>::infinity(), 4.0, 1.0}, expected),
      std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace olrank
