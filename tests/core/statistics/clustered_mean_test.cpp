#include "core/statistics/clustered_mean.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

RngStream coins(std::uint32_t seed) {
  return {make_key({.seed = seed, .purpose = Purpose::kProbe}), seed};
}

TEST(ClusteredMeanTest, IsTheSlowFormula) {
  RngStream random = coins(1);
  ClusteredMean mean(7);
  std::vector<double> sums(7, 0.0);
  std::vector<double> counts(7, 0.0);
  for (int value = 0; value < 100; ++value) {
    const std::uint32_t cluster = random.index(6);  // one stays empty
    const double drawn = random.uniform();
    mean.add(cluster, drawn);
    sums[cluster] += drawn;
    counts[cluster] += 1.0;
  }
  double total = 0.0;
  for (const double sum : sums) total += sum;
  double squares = 0.0;
  for (std::size_t cluster = 0; cluster < 7; ++cluster)
    squares += std::pow(sums[cluster] - total / 100.0 * counts[cluster], 2);
  EXPECT_EQ(mean.values(), 100);
  EXPECT_EQ(mean.clusters(), 6);
  EXPECT_NEAR(mean.mean(), total / 100.0, 1e-12);
  EXPECT_NEAR(mean.variance(), squares * 6.0 / 5.0 / 10'000.0, 1e-12);
  mean.clear();
  EXPECT_EQ(mean.values(), 0);
  EXPECT_EQ(mean.variance(), 0.0);
}

TEST(ClusteredMeanTest, OneValueAClusterHasTheVarianceOfAMean) {
  ClusteredMean mean(3);
  for (int cluster = 0; cluster < 3; ++cluster) mean.add(cluster, cluster);
  EXPECT_NEAR(mean.variance(), 1.0 / 3.0, 1e-12);
}

TEST(ClusteredMeanTest, ContinuesFromItsStateToTheSameBits) {
  RngStream random = coins(2);
  ClusteredMean whole(10);
  ClusteredMean resumed(10);
  for (int value = 0; value < 200; ++value) {
    if (value == 77) {
      StateWriter writer;
      whole.save(writer, "mean");
      StateReader reader(writer.bytes(), "state");
      resumed.load(reader, "mean");
    }
    const std::uint32_t cluster = random.index(10);
    const double drawn = random.uniform();
    whole.add(cluster, drawn);
    if (value >= 77) resumed.add(cluster, drawn);
  }
  EXPECT_EQ(resumed.mean(), whole.mean());
  EXPECT_EQ(resumed.variance(), whole.variance());
}

TEST(AnytimeIntervalTest, IsWiderThanForOneTimeByAKnownFactor) {
  // √((t + 100)/t · ln((t + 100)/(100 α²))) deviations.
  const Interval interval = anytime_interval(2.0, 0.25, 800.0, 0.95);
  const double deviations = std::sqrt(900.0 / 800.0 * std::log(900.0 / (100.0 * 0.0025)));
  EXPECT_NEAR(interval.high - 2.0, 0.5 * deviations, 1e-12);
  EXPECT_NEAR(interval.low, 2.0 - 0.5 * deviations, 1e-12);
  EXPECT_NEAR(deviations / 1.96, 1.55, 0.01);
}

/// Users who click more or less, and come back to the arm that they had: whether a difference between two
/// equal arms was ever found, after any list.
bool finds_a_difference(std::uint32_t seed, int lists, double share) {
  constexpr std::uint32_t kUsers = 3000;
  RngStream random = coins(seed);
  std::vector<double> rate(kUsers);
  for (double& user : rate) user = 0.6 * random.uniform();
  ClusteredMean arms[2] = {ClusteredMean(kUsers), ClusteredMean(kUsers)};
  for (int list = 0; list < lists; ++list) {
    const std::uint32_t user = random.index(kUsers);
    double clicks = 0.0;
    for (int doc = 0; doc < 3; ++doc) clicks += random.uniform() < rate[user] ? 1.0 : 0.0;
    arms[user < share * kUsers ? 1 : 0].add(user, clicks);
    if (arms[0].clusters() < 30 || arms[1].clusters() < 30) continue;
    const Interval difference = anytime_difference(arms[1], arms[0], 0.95);
    if (difference.low > 0.0 || difference.high < 0.0) return true;
  }
  return false;
}

TEST(AnytimeIntervalTest, PeekingAfterEachListFindsNoDifferenceBetweenEqualArms) {
  for (const double share : {0.5, 0.05}) {
    int found = 0;
    for (std::uint32_t seed = 1; seed <= 1000; ++seed)
      found += finds_a_difference(seed, 10'000, share) ? 1 : 0;
    EXPECT_LE(found, 50) << "of 1,000 tests with a share of " << share;
    RecordProperty(share == 0.5 ? "false_alarms_even" : "false_alarms_uneven", found);
  }
}

}  // namespace
}  // namespace olrank
