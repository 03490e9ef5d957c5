#include "core/statistics/t_tests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random/rng_stream.h"

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

}  // namespace
}  // namespace olrank
