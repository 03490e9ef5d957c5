#include "core/statistics/hierarchical_bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

PhiloxKey key() {
  return make_key({.seed = 5, .purpose = Purpose::kResampling});
}

TEST(HierarchicalBootstrap, TwoValuesHaveThreeResampledMeans) {
  // Means 0, 0.5 and 1 with chances 1/4, 1/2 and 1/4.
  const BootstrapInterval wide = hierarchical_bootstrap({{{0.0}, {1.0}}}, key(), 1000, 0.95);
  EXPECT_EQ(wide.low, 0.0);
  EXPECT_EQ(wide.high, 1.0);
  const BootstrapInterval narrow = hierarchical_bootstrap({{{0.0}, {1.0}}}, key(), 1000, 0.4);
  EXPECT_EQ(narrow.low, 0.5);
  EXPECT_EQ(narrow.high, 0.5);
}

/// Var of the redrawn mean of one level is the biased variance of its values over their number, and levels
/// add up; four deviations of a normal are the width of its 95.45 % interval.
TEST(HierarchicalBootstrap, IncludesVarianceOfEveryLevel) {
  RngStream coins(key(), 0);
  NestedValues values(30);
  for (auto& fold : values) {
    const double effect = coins.normal();
    for (int s = 0; s < 20; ++s) {
      const double luck = coins.normal();
      fold.emplace_back();
      for (int q = 0; q < 10; ++q) fold.back().push_back(effect + luck + coins.normal());
    }
  }
  const auto biased_variance = [](const std::vector<double>& sample) {
    double mean = 0.0;
    for (const double value : sample) mean += value / static_cast<double>(sample.size());
    double sum = 0.0;
    for (const double value : sample) sum += (value - mean) * (value - mean);
    return sum / static_cast<double>(sample.size());
  };
  std::vector<double> folds;
  double within_folds = 0.0;
  for (const auto& fold : values) {
    std::vector<double> seeds;
    double within_seeds = 0.0;
    for (const auto& seed : fold) {
      double mean = 0.0;
      for (const double query : seed) mean += query / 10.0;
      seeds.push_back(mean);
      within_seeds += biased_variance(seed) / 10.0;
    }
    double mean = 0.0;
    for (const double seed : seeds) mean += seed / 20.0;
    folds.push_back(mean);
    within_folds += biased_variance(seeds) / 20.0 + within_seeds / 400.0;
  }
  const double deviation = std::sqrt(biased_variance(folds) / 30.0 + within_folds / 900.0);
  const BootstrapInterval interval = hierarchical_bootstrap(values, key(), 4000, 0.9545);
  // A quantile of 4,000 draws near two deviations has a standard error of 0.045 deviations.
  EXPECT_NEAR((interval.high - interval.low) / (4.0 * deviation), 1.0, 0.07);
}

/// Of one seed with many queries the means are drawn from a normal distribution: as wide as drawing one by
/// one, which is the standard error of a mean.
TEST(HierarchicalBootstrap, ManyQueriesMatchStandardError) {
  for (const std::size_t queries : {kDrawnOneByOne, 4 * kDrawnOneByOne}) {
    RngStream coins(key(), 3);
    std::vector<double> values;
    double mean = 0.0;
    for (std::size_t q = 0; q < queries; ++q) {
      values.push_back(coins.uniform());
      mean += values.back() / static_cast<double>(queries);
    }
    double variance = 0.0;
    for (const double value : values)
      variance += (value - mean) * (value - mean) / static_cast<double>(queries);
    const double deviation = std::sqrt(variance / static_cast<double>(queries));
    const BootstrapInterval interval = hierarchical_bootstrap({{values}}, key(), 4000, 0.9545);
    EXPECT_NEAR((interval.high - interval.low) / (4.0 * deviation), 1.0, 0.07);
    EXPECT_NEAR(0.5 * (interval.high + interval.low), mean, 0.1 * deviation);
  }
}

TEST(HierarchicalBootstrap, IsNanWithoutVariation) {
  EXPECT_TRUE(std::isnan(hierarchical_bootstrap({{{0.5}}}, key()).low));
  EXPECT_TRUE(std::isnan(hierarchical_bootstrap({}, key()).low));
  EXPECT_TRUE(std::isnan(hierarchical_bootstrap({{}, {{}}}, key()).high));
  const BootstrapInterval constant = hierarchical_bootstrap({{{0.5}, {0.5}, {0.5}}}, key());
  EXPECT_EQ(constant.low, 0.5);
  EXPECT_EQ(constant.high, 0.5);
}

TEST(HierarchicalBootstrap, IsDeterministic) {
  const NestedValues values = {{{0.1}, {0.4}, {0.2}}, {{0.3}, {0.9}}};
  const BootstrapInterval first = hierarchical_bootstrap(values, key());
  const BootstrapInterval second = hierarchical_bootstrap(values, key());
  EXPECT_EQ(first.low, second.low);
  EXPECT_EQ(first.high, second.high);
}

}  // namespace
}  // namespace olrank
