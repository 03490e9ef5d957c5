#include "core/statistics/t_tests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

TEST(SampleSize, MatchesPublishedTables) {
  // Paired t tests, two-sided, level 0.05, power 0.8: G*Power 3.1 gives 199, 34, 15 and 10 pairs.
  EXPECT_EQ(sample_size(0.2, 1.0, 0.05), 199U);
  EXPECT_EQ(sample_size(0.5, 1.0, 0.05), 34U);
  EXPECT_EQ(sample_size(0.8, 1.0, 0.05), 15U);
  EXPECT_EQ(sample_size(1.0, 1.0, 0.05), 10U);
}

TEST(SampleSize, DependsOnTheRatioAlone) {
  EXPECT_EQ(sample_size(-0.005, 0.01, 0.05), sample_size(0.5, 1.0, 0.05));
  EXPECT_EQ(sample_size(0.3, 0.0, 0.05), 2U);
}

TEST(SampleSize, IsNothingWhereNoSampleIsLargeEnough) {
  EXPECT_FALSE(sample_size(0.0, 1.0, 0.05));
  EXPECT_FALSE(sample_size(1e-6, 1.0, 0.05));
  EXPECT_FALSE(sample_size(std::nan(""), 1.0, 0.05));
  EXPECT_FALSE(sample_size(0.1, std::nan(""), 0.05));
  EXPECT_TRUE(std::isnan(detectable_difference(1, 1.0, 0.05)));
}

TEST(PlanningDeviation, IsAnUpperLimit) {
  // Chi-squared's 20 % quantiles: 0.0642, 0.446, 1.649 and 6.179 with 1, 2, 4 and 10 degrees of freedom.
  EXPECT_NEAR(planning_deviation(1.0, 2.0), std::sqrt(2.0 / 0.446), 0.02);
  EXPECT_NEAR(planning_deviation(0.5, 4.0), 0.5 * std::sqrt(4.0 / 1.649), 0.01);
  EXPECT_NEAR(planning_deviation(1.0, 10.0), std::sqrt(10.0 / 6.179), 0.005);
  EXPECT_NEAR(planning_deviation(1.0, 1.0), std::sqrt(1.0 / 0.0642), 0.35);
}

/// A test of the planned size finds the difference as often as planned: over 4,000 samples the standard
/// error is 0.0063, and the bounds are about four of them wider than the error of the approximation.
TEST(SampleSize, GivesThePlannedPower) {
  constexpr int kSamples = 4000;
  for (const double difference : {0.6, 1.2}) {
    for (const double level : {0.05, 0.005}) {
      const auto units = sample_size(difference, 1.0, level);
      ASSERT_TRUE(units);
      int found = 0;
      for (int sample = 0; sample < kSamples; ++sample) {
        RngStream coins(make_key({.seed = 3, .purpose = Purpose::kResampling}),
                        static_cast<std::uint32_t>(sample));
        std::vector<double> differences(*units);
        for (double& value : differences) value = difference + coins.normal();
        found += paired_t_p(differences) < level ? 1 : 0;
      }
      const double share = static_cast<double>(found) / kSamples;
      EXPECT_GT(share, kPower - 0.03) << difference << " " << level << " " << *units;
      EXPECT_LT(share, kPower + 0.08) << difference << " " << level << " " << *units;
    }
  }
}

}  // namespace
}  // namespace olrank
