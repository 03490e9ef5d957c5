#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random/rng_stream.h"
#include "core/statistics/intervals.h"
#include "core/statistics/t_tests.h"
#include "tests/support/sanitized.h"

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

TEST(ClusteredMeanTest, ContinuesFromItsSumsToTheSameBits) {
  RngStream random = coins(2);
  ClusteredMean whole(10);
  ClusteredMean resumed(10);
  for (int value = 0; value < 200; ++value) {
    if (value == 77) resumed = ClusteredMean(whole.sums());
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

/// Two arms of users who click more or less, and come back to the arm that they had. Users of the second
/// arm click more by a factor.
struct Trial {
  Trial(std::uint32_t seed, std::uint32_t users, double share, double factor)
      : random(coins(seed)), rate(users), one(users), other(users) {
    for (double& user : rate) user = 0.6 * random.uniform();
    first_of_second = static_cast<std::uint32_t>((1.0 - share) * users);
    for (std::uint32_t user = first_of_second; user < users; ++user) rate[user] *= factor;
  }

  /// Whether the interval says that the arms differ.
  bool show_list() {
    const std::uint32_t user = random.index(static_cast<std::uint32_t>(rate.size()));
    double clicks = 0.0;
    for (int doc = 0; doc < 3; ++doc) clicks += random.uniform() < rate[user] ? 1.0 : 0.0;
    (user < first_of_second ? one : other).add(user, clicks);
    if (one.clusters() < 30 || other.clusters() < 30) return false;
    const Interval difference = anytime_difference(other, one, 0.95);
    return difference.low > 0.0 || difference.high < 0.0;
  }

  RngStream random;
  std::vector<double> rate;  // of a document to be clicked
  std::uint32_t first_of_second = 0;
  ClusteredMean one;
  ClusteredMean other;
};

TEST(AnytimeIntervalTest, PeekingAfterEachListFindsNoDifferenceBetweenEqualArms) {
  constexpr std::uint32_t kTests = kSanitized ? 100 : 1000;
  for (const double share : {0.5, 0.05}) {
    int found = 0;
    for (std::uint32_t seed = 1; seed <= kTests; ++seed) {
      Trial trial(seed, 3000, share, 1.0);
      for (int list = 0; list < 10'000; ++list) {
        if (!trial.show_list()) continue;
        ++found;
        break;
      }
    }
    EXPECT_LE(found, kTests / 20) << "of " << kTests << " tests with a share of " << share;
    RecordProperty(share == 0.5 ? "even" : "uneven", found);
  }
}

constexpr int kExperiments = 2000;
constexpr double kTruth = 0.4;

PhiloxKey key(std::uint64_t seed) {
  return make_key({.seed = seed, .purpose = Purpose::kResampling});
}

/// Trials whose seeds have deviation 1 and whose folds have deviation `fold_sd`.
FoldedValues simulated(int folds, int seeds, double fold_sd, RngStream& coins) {
  FoldedValues values(static_cast<std::size_t>(folds));
  for (auto& fold : values) {
    const double effect = fold_sd * coins.normal();
    for (int seed = 0; seed < seeds; ++seed) fold.push_back(kTruth + effect + coins.normal());
  }
  return values;
}

bool covers(const MeanInterval& interval) {
  return std::abs(interval.mean - kTruth) <= interval.half_width;
}

double coverage(int folds, int seeds, double fold_sd) {
  int covered = 0;
  for (int i = 0; i < kExperiments; ++i) {
    RngStream coins(key(11), static_cast<std::uint32_t>(i));
    covered += covers(mean_interval(simulated(folds, seeds, fold_sd, coins))) ? 1 : 0;
  }
  return static_cast<double>(covered) / kExperiments;
}

/// The share of experiments in which the t test rejects the true difference.
double rejections(int folds, int seeds, double fold_sd) {
  int rejected = 0;
  for (int i = 0; i < kExperiments; ++i) {
    RngStream coins(key(11), static_cast<std::uint32_t>(i));
    FoldedValues differences = simulated(folds, seeds, fold_sd, coins);
    for (std::vector<double>& fold : differences) {
      for (double& value : fold) value -= kTruth;
    }
    rejected += paired_test(differences).t_p < 1.0 - kConfidence ? 1 : 0;
  }
  return static_cast<double>(rejected) / kExperiments;
}

// The standard error of a share of 0.05 over 2,000 experiments is 0.0049, so that the bounds are four of
// them away: a false alarm in 16,000.
TEST(PairedTest, KeepsItsLevelUnderFoldEffects) {
  for (const double fold_sd : {0.0, 0.3, 1.0}) {
    for (const int folds : {3, 5}) {
      const double rejected = rejections(folds, 3, fold_sd);
      EXPECT_GT(rejected, 0.03) << folds << " folds, sd " << fold_sd;
      EXPECT_LT(rejected, 0.07) << folds << " folds, sd " << fold_sd;
    }
  }
}

// docs/METRICS.md says so of intervals over trials of several folds.
TEST(Coverage, OverSeveralFoldsIsNominalOnlyWithoutFoldEffects) {
  EXPECT_NEAR(coverage(5, 3, 0.0), 0.95, 0.02);
  EXPECT_LT(coverage(5, 3, 1.0), 0.9);
}

}  // namespace
}  // namespace olrank
