#include "core/statistics/t_tests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "core/random/rng_stream.h"
#include "core/statistics/intervals.h"
#include "tests/support/sanitized.h"

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
    const double seen = std::accumulate(differences.begin(), differences.end(), 0.0);
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
  const PairedTest zero = paired_test({{0.0, 0.0, 0.0}}, paired_key());
  EXPECT_EQ(zero.t_p, 1.0);
  EXPECT_EQ(zero.flip_p, 1.0);
  EXPECT_EQ(paired_test({{0.5, 0.5, 0.5}}, paired_key()).t_p, 0.0);
  EXPECT_TRUE(std::isnan(paired_test({{0.5}}, paired_key()).t_p));
  EXPECT_TRUE(std::isnan(paired_test({}, paired_key()).flip_p));
}

TEST(SampleSize, MatchesPublishedTablesAndDependsOnTheRatioAlone) {
  // Paired t tests, two-sided, level 0.05, power 0.8: G*Power 3.1 gives 199, 34, 15 and 10 pairs.
  for (const auto& [ratio, units] :
       {std::pair{0.2, 199U}, std::pair{0.5, 34U}, std::pair{0.8, 15U}, std::pair{1.0, 10U}}) {
    EXPECT_EQ(sample_size(ratio, 1.0, 0.05), units);
    EXPECT_EQ(sample_size(-0.01 * ratio, 0.01, 0.05), units);
  }
  EXPECT_NEAR(static_cast<double>(*sample_size(0.5, 1.0, 0.005)), 58.0, 1.0);  // by the non-central t
  EXPECT_EQ(sample_size(0.3, 0.0, 0.05), 2U);
  // No sample is large enough.
  for (const auto& [difference, deviation] : {std::pair{0.0, 1.0}, std::pair{1e-6, 1.0},
                                              std::pair{std::nan(""), 1.0}, std::pair{0.1, std::nan("")}})
    EXPECT_FALSE(sample_size(difference, deviation, 0.05));
  EXPECT_TRUE(std::isnan(detectable_difference(1, 1.0, 0.05)));
}

TEST(PlanningDeviation, IsAnUpperLimit) {
  // Chi-squared's 20 % quantiles: 0.0642, 0.446, 1.649 and 6.179 with 1, 2, 4 and 10 degrees of freedom.
  EXPECT_NEAR(planning_deviation(1.0, 2.0), std::sqrt(2.0 / 0.446), 0.02);
  EXPECT_NEAR(planning_deviation(0.5, 4.0), 0.5 * std::sqrt(4.0 / 1.649), 0.01);
  EXPECT_NEAR(planning_deviation(1.0, 10.0), std::sqrt(10.0 / 6.179), 0.005);
  EXPECT_NEAR(planning_deviation(1.0, 1.0), std::sqrt(1.0 / 0.0642), 0.35);
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
  const std::vector<double> y = {1.0, 2.0, 4.0};
  for (const std::vector<std::vector<double>>& x : std::vector<std::vector<std::vector<double>>>{
           {{1.0, 2.0}, {2.0, 1.0}}, {{1.0, 2.0, 3.0}, {2.0, 4.0, 6.0}}, {{5.0, 5.0, 5.0}}}) {
    for (const double value : fit_least_squares(std::span(y).first(x[0].size()), x))
      EXPECT_TRUE(std::isnan(value));
  }
}

TEST(IncompleteBeta, MatchesPolynomialCases) {
  for (double x = 0.0; x <= 1.0; x += 0.05) {
    EXPECT_NEAR(regularised_incomplete_beta(1.0, 1.0, x), x, 1e-14);
    EXPECT_NEAR(regularised_incomplete_beta(2.0, 3.0, x), x * x * (6.0 - 8.0 * x + 3.0 * x * x), 1e-14);
  }
  for (const double a : {0.3, 1.0, 7.5, 400.0}) {
    EXPECT_NEAR(regularised_incomplete_beta(a, a, 0.5), 0.5, 1e-12) << a;
  }
  EXPECT_TRUE(std::isnan(regularised_incomplete_beta(0.0, 1.0, 0.5)));
  EXPECT_TRUE(std::isnan(regularised_incomplete_beta(1.0, 1.0, 1.5)));
}

TEST(StudentT, QuantilesMatchTables) {
  struct Row {
    double probability, freedom, quantile;
  };
  // Printed with five significant decimals, as in Fisher and Yates' table III and its successors.
  for (const Row& row : {Row{0.975, 1, 12.70620}, Row{0.975, 2, 4.30265}, Row{0.975, 4, 2.77645},
                         Row{0.975, 9, 2.26216}, Row{0.975, 30, 2.04227}, Row{0.975, 120, 1.97993},
                         Row{0.95, 5, 2.01505}, Row{0.995, 10, 3.16927}, Row{0.9995, 3, 12.92398}}) {
    EXPECT_NEAR(student_t_quantile(row.probability, row.freedom), row.quantile, 6e-6) << row.freedom;
    EXPECT_NEAR(student_t_quantile(1.0 - row.probability, row.freedom), -row.quantile, 6e-6);
  }
  EXPECT_NEAR(student_t_quantile(0.5, 3), 0.0, 1e-12);
}

TEST(MeanInterval, OverOneFoldIsOverItsSeeds) {
  // Student's sleep data (Biometrika 1908): 0.7001142 to 2.4598858.
  const MeanInterval interval = mean_interval({{1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4}});
  EXPECT_NEAR(interval.mean, 1.58, 1e-12);
  EXPECT_NEAR(interval.mean - interval.half_width, 0.7001142, 1e-7);
  EXPECT_NEAR(interval.mean + interval.half_width, 2.4598858, 1e-7);
  EXPECT_EQ(interval.units, 10U);
  EXPECT_FALSE(interval.over_folds);
}

TEST(MeanInterval, OverSeveralFoldsIsOverTheirTrials) {
  const FoldedValues values = {{1.0, 3.0}, {4.0}, {}, {5.0, 6.0, 10.0}};
  const MeanInterval folded = mean_interval(values);
  const MeanInterval of_trials = mean_interval({{1.0, 3.0, 4.0, 5.0, 6.0, 10.0}});
  EXPECT_DOUBLE_EQ(folded.mean, of_trials.mean);
  EXPECT_DOUBLE_EQ(folded.half_width, of_trials.half_width);
  EXPECT_EQ(independent_values(values), (std::vector<double>{2.0, 4.0, 7.0}));
  EXPECT_EQ(folded.values, 6U);
  EXPECT_EQ(folded.units, 3U);
  EXPECT_TRUE(folded.over_folds);
}

TEST(MeanInterval, NeedsTwoValues) {
  const MeanInterval one = mean_interval({{0.25}});
  EXPECT_EQ(one.mean, 0.25);
  EXPECT_TRUE(std::isnan(one.half_width));
  EXPECT_TRUE(std::isnan(mean_interval({}).mean));
  EXPECT_EQ(mean_interval({{0.5, 0.5, 0.5}}).half_width, 0.0);
}

TEST(Holm, MatchesPublishedExampleIgnoresNanAndCapsAtOne) {
  // R's p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm"), with a value that is none.
  const std::vector<double> adjusted = holm_adjusted(std::vector{0.01, 0.04, std::nan(""), 0.03, 0.005});
  const std::vector<double> expected = {0.03, 0.06, std::nan(""), 0.06, 0.02};
  EXPECT_TRUE(std::isnan(adjusted.at(2)));
  for (const std::size_t i : {0, 1, 3, 4}) EXPECT_NEAR(adjusted[i], expected[i], 1e-15);
  EXPECT_EQ(holm_adjusted(std::vector{0.7, 0.8}), (std::vector{1.0, 1.0}));
}

TEST(SortedQuantile, InterpolatesBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(sorted_quantile({0.0, 1.0, 2.0, 3.0}, 0.1), 0.3);
  EXPECT_DOUBLE_EQ(sorted_quantile({0.0, 1.0, 2.0, 4.0}, 0.9), 3.4);
  EXPECT_EQ(sorted_quantile({0.5}, 0.1), 0.5);
}

TEST(CurveArea, IsTheMeanHeight) {
  EXPECT_DOUBLE_EQ(curve_area(std::vector{0.0, 10.0, 30.0}, std::vector{0.0, 1.0, 1.0}), 25.0 / 30.0);
  EXPECT_DOUBLE_EQ(curve_area(std::vector{5.0, 7.0}, std::vector{0.25, 0.25}), 0.25);
  EXPECT_EQ(curve_area(std::vector{3.0}, std::vector{0.5}), 0.5);
  EXPECT_TRUE(std::isnan(curve_area({}, {})));
}

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
  const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
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
      int list = 0;
      while (list < 10'000 && !trial.show_list()) ++list;
      found += list < 10'000 ? 1 : 0;
    }
    EXPECT_LE(found, kTests / 20) << "of " << kTests << " tests with a share of " << share;
    RecordProperty(share == 0.5 ? "even" : "uneven", found);
  }
}

constexpr int kExperiments = 2000;

/// The share of experiments that `holds`: of three seeds with deviation 1 around `mean` for each fold, and
/// of folds with deviation `fold_sd`.
template <class Holds>
double share_of_experiments(int folds, double fold_sd, double mean, const Holds& holds) {
  int count = 0;
  for (int i = 0; i < kExperiments; ++i) {
    RngStream coins(paired_key(11), static_cast<std::uint32_t>(i));
    FoldedValues values(static_cast<std::size_t>(folds));
    for (auto& fold : values) {
      const double effect = fold_sd * coins.normal();
      for (int seed = 0; seed < 3; ++seed) fold.push_back(mean + effect + coins.normal());
    }
    count += holds(values) ? 1 : 0;
  }
  return static_cast<double>(count) / kExperiments;
}

double coverage(int folds, double fold_sd) {
  constexpr double kTruth = 0.4;
  return share_of_experiments(folds, fold_sd, kTruth, [](const FoldedValues& values) {
    const MeanInterval interval = mean_interval(values);
    return std::abs(interval.mean - kTruth) <= interval.half_width;
  });
}

/// The share of experiments in which the t test rejects the true difference.
double rejections(int folds, double fold_sd) {
  return share_of_experiments(folds, fold_sd, 0.0, [](const FoldedValues& differences) {
    return paired_test(differences).t_p < 1.0 - kConfidence;
  });
}

// The standard error of a share of 0.05 over 2,000 experiments is 0.0049, so that the bounds are four of
// them away: a false alarm in 16,000.
TEST(PairedTest, KeepsItsLevelUnderFoldEffects) {
  for (const double fold_sd : {0.0, 0.3, 1.0}) {
    for (const int folds : {3, 5}) {
      const double rejected = rejections(folds, fold_sd);
      EXPECT_GT(rejected, 0.03) << folds << " folds, sd " << fold_sd;
      EXPECT_LT(rejected, 0.07) << folds << " folds, sd " << fold_sd;
    }
  }
}

// docs/METRICS.md says so of intervals over trials of several folds.
TEST(Coverage, OverSeveralFoldsIsNominalOnlyWithoutFoldEffects) {
  EXPECT_NEAR(coverage(5, 0.0), 0.95, 0.02);
  EXPECT_LT(coverage(5, 1.0), 0.9);
}

}  // namespace
}  // namespace olrank
