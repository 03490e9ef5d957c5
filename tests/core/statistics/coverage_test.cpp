#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random/rng_stream.h"
#include "core/statistics/hierarchical_bootstrap.h"
#include "core/statistics/t_tests.h"

namespace olrank {
namespace {

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

TEST(Coverage, WithinOneFoldIsNominal) {
  for (const int seeds : {2, 3, 5, 10}) {
    const double covered = coverage(1, seeds, 0.0);
    EXPECT_GT(covered, 0.93) << seeds;
    EXPECT_LT(covered, 0.97) << seeds;
  }
}

// docs/METRICS.md says so of intervals over trials of several folds.
TEST(Coverage, OverSeveralFoldsIsNominalOnlyWithoutFoldEffects) {
  EXPECT_NEAR(coverage(5, 3, 0.0), 0.95, 0.02);
  EXPECT_LT(coverage(5, 3, 1.0), 0.9);
}

/// Pairs of rankers that share their trials' luck. Returns the share of experiments with a false rejection.
double family_error(int rankers, int seeds, bool adjusted) {
  int wrong = 0;
  for (int i = 0; i < kExperiments; ++i) {
    RngStream coins(key(13), static_cast<std::uint32_t>(i));
    std::vector<std::vector<double>> results(rankers);
    for (int seed = 0; seed < seeds; ++seed) {
      const double luck = 3.0 * coins.normal();
      for (auto& of_ranker : results) of_ranker.push_back(luck + coins.normal());
    }
    std::vector<double> p_values;
    for (std::size_t a = 0; a < results.size(); ++a) {
      for (std::size_t b = a + 1; b < results.size(); ++b) {
        std::vector<double> differences;
        for (std::size_t s = 0; s < results[a].size(); ++s)
          differences.push_back(results[a][s] - results[b][s]);
        p_values.push_back(paired_t_p(differences));
      }
    }
    if (adjusted) p_values = holm_adjusted(p_values);
    bool rejected = false;
    for (const double p : p_values) rejected = rejected || p < 0.05;
    wrong += rejected ? 1 : 0;
  }
  return static_cast<double>(wrong) / kExperiments;
}

TEST(Holm, BoundsFamilyWiseError) {
  // Three standard errors above 5 %.
  EXPECT_LT(family_error(5, 10, true), 0.05 + 3 * 0.0049);
  EXPECT_LT(family_error(3, 5, true), 0.05 + 3 * 0.0049);
  EXPECT_GT(family_error(5, 10, false), 0.15);
}

double bootstrap_coverage(int folds, int seeds, double fold_sd) {
  constexpr int kFewer = 1000;
  int covered = 0;
  for (int i = 0; i < kFewer; ++i) {
    RngStream coins(key(17), static_cast<std::uint32_t>(i));
    NestedValues nested;
    for (const auto& fold : simulated(folds, seeds, fold_sd, coins)) {
      nested.emplace_back();
      for (const double value : fold) nested.back().push_back({value});
    }
    const BootstrapInterval interval =
        hierarchical_bootstrap(nested, key(static_cast<std::uint64_t>(100 + i)), 500);
    covered += interval.low <= kTruth && kTruth <= interval.high ? 1 : 0;
  }
  return static_cast<double>(covered) / kFewer;
}

// What the page says of this interval, as 20,000 experiments told. Bounds are three standard errors (0.011
// each) away.
TEST(Coverage, OfBootstrapMatchesReport) {
  EXPECT_NEAR(bootstrap_coverage(1, 5, 0.0), 0.84, 0.035);
  EXPECT_NEAR(bootstrap_coverage(5, 5, 1.0), 0.89, 0.035);
  EXPECT_NEAR(bootstrap_coverage(5, 5, 0.0), 0.97, 0.035);
}

}  // namespace
}  // namespace olrank
