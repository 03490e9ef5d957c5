#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random/rng_stream.h"
#include "core/statistics/least_squares.h"
#include "core/statistics/t_tests.h"

namespace olrank {
namespace {

PhiloxKey paired_key(std::uint64_t seed = 1) {
  return make_key({.seed = seed, .purpose = Purpose::kResampling});
}

/// Darwin's maize, crossed less self-fertilised, in eighths of an inch (Fisher, The Design of Experiments,
/// 1935, section 17 and 21).
const std::vector<double> kMaize = {49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48};

TEST(PairedT, MatchesPublishedExample) {
  const PairedTest sleep = paired_test({{1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4}}, paired_key());
  EXPECT_NEAR(sleep.t, 4.0621, 5e-5);
  EXPECT_NEAR(sleep.t_p, 0.002833, 5e-7);
  const PairedTest maize = paired_test({kMaize}, paired_key());
  EXPECT_NEAR(maize.t, 2.148, 5e-4);
  EXPECT_NEAR(maize.t_p, 0.0497, 5e-5);
}

TEST(SignFlip, MatchesFishersCount) {
  const SignFlipTest test = sign_flip_test(kMaize, paired_key());
  EXPECT_TRUE(test.exact);
  EXPECT_DOUBLE_EQ(test.p, 1726.0 / 32768.0);
}

TEST(SignFlip, MatchesExhaustiveEnumeration) {
  RngStream coins(paired_key(7), 0);
  for (int size = 2; size <= 9; ++size) {
    std::vector<double> differences(size);
    for (double& difference : differences) difference = std::round(4.0 * coins.normal()) + 1.0;
    double seen = 0.0;
    for (const double difference : differences) seen += difference;
    int as_far = 0;
    for (int pattern = 0; pattern < 1 << size; ++pattern) {
      double sum = 0.0;
      for (int i = 0; i < size; ++i) {
        const double difference = differences[i];
        sum += (pattern >> i & 1) != 0 ? -difference : difference;
      }
      as_far += std::abs(sum) >= std::abs(seen) ? 1 : 0;
    }
    EXPECT_DOUBLE_EQ(sign_flip_test(differences, paired_key()).p, as_far / std::pow(2.0, size)) << size;
  }
}

TEST(SignFlip, SamplesWhenThereAreTooManyPatterns) {
  // Seventeen differences, of which the last is too small to matter: the answer is Fisher's again.
  std::vector<double> many = kMaize;
  many.push_back(1e-9);
  many.push_back(1e-9);
  const SignFlipTest drawn = sign_flip_test(many, paired_key());
  EXPECT_FALSE(drawn.exact);
  // The standard error of 9,999 draws is 0.0022; five of them: a false alarm in 2 million.
  EXPECT_NEAR(drawn.p, 1726.0 / 32768.0, 0.011);
  EXPECT_EQ(drawn.p, sign_flip_test(many, paired_key()).p);
  EXPECT_NE(drawn.p, sign_flip_test(many, paired_key(2)).p);
}

TEST(PairedTest, UsesFoldMeans) {
  const PairedTest folded = paired_test({{0.1, 0.3}, {0.4}, {0.2, 0.4}}, paired_key());
  const PairedTest of_means = paired_test({{0.2, 0.4, 0.3}}, paired_key());
  EXPECT_NEAR(folded.t, of_means.t, 1e-9);
  EXPECT_NEAR(folded.t_p, of_means.t_p, 1e-12);
  EXPECT_EQ(folded.flip_p, 0.25);  // two of eight patterns: three folds cannot say more
  EXPECT_TRUE(folded.difference.over_folds);
}

TEST(PairedTest, HandlesConstantDifferences) {
  EXPECT_EQ(paired_test({{0.0, 0.0, 0.0}}, paired_key()).t_p, 1.0);
  EXPECT_EQ(paired_test({{0.0, 0.0, 0.0}}, paired_key()).flip_p, 1.0);
  EXPECT_EQ(paired_test({{0.5, 0.5, 0.5}}, paired_key()).t_p, 0.0);
  EXPECT_TRUE(std::isnan(paired_test({{0.5}}, paired_key()).t_p));
  EXPECT_TRUE(std::isnan(paired_test({}, paired_key()).flip_p));
}

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

TEST(LeastSquares, RecoversAPlantedPlane) {
  std::vector<double> y;
  std::vector<std::vector<double>> x(2);
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 3; ++b) {
      if (a == 3 && b == 2) continue;  // a grid with a hole: the columns correlate
      x[0].push_back(0.5 * a);
      x[1].push_back(100.0 + b * b);
      y.push_back(3.0 - 0.25 * x[0].back() + 2.0 * x[1].back());
    }
  }
  const std::vector<double> found = fit_least_squares(y, x);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NEAR(found[0], 3.0, 1e-9);
  EXPECT_NEAR(found[1], -0.25, 1e-10);
  EXPECT_NEAR(found[2], 2.0, 1e-10);
}

TEST(LeastSquares, LeavesResidualsThatNoColumnExplains) {
  const std::vector<double> y = {1.0, 4.0, 2.0, 8.0, 5.0, 7.0};
  const std::vector<std::vector<double>> x = {{0.0, 1.0, 2.0, 3.0, 4.0, 5.0},
                                              {1.0, 0.0, 1.0, 2.0, 5.0, 3.0}};
  const std::vector<double> c = fit_least_squares(y, x);
  double sums[3] = {};
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double left = y[i] - c[0] - c[1] * x[0][i] - c[2] * x[1][i];
    sums[0] += left;
    sums[1] += left * x[0][i];
    sums[2] += left * x[1][i];
  }
  for (const double sum : sums) EXPECT_NEAR(sum, 0.0, 1e-12);
}

TEST(LeastSquares, IsNanWhereThePointsDoNotDecide) {
  const std::vector<double> two = {1.0, 2.0};
  for (const double value : fit_least_squares(two, {{1.0, 2.0}, {2.0, 1.0}}))
    EXPECT_TRUE(std::isnan(value));
  const std::vector<double> three = {1.0, 2.0, 4.0};
  for (const double value : fit_least_squares(three, {{1.0, 2.0, 3.0}, {2.0, 4.0, 6.0}}))
    EXPECT_TRUE(std::isnan(value));
  for (const double value : fit_least_squares(three, {{5.0, 5.0, 5.0}})) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace olrank
