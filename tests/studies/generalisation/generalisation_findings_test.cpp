#include "studies/generalisation/generalisation_findings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace olrank {
namespace {

StudiedRow planted(std::int64_t seed, double m, double n, double b, double c) {
  StudiedRow one;
  one.experiment = 'A';
  one.seed = seed;
  one.row.labels = {{"noise", "query"}, {"loss", "listnet"}};
  const double gap = std::exp(0.3 * static_cast<double>(seed)) * std::pow(m, b) * std::pow(n, c);
  one.row.values = {{"m", m},
                    {"n", n},
                    {"gap", gap},
                    {"plain_gap", gap},
                    {"bound", 1e6},
                    {"regularised_bound", 1e6},
                    {"uniform_bound", 1e6},
                    {"slopes", 2},
                    {"length_bound", 1e6},
                    {"radius_share", 0.5}};
  return one;
}

TEST(LogSlopes, RecoverWhatWasPlantedInEachSeed) {
  std::vector<StudiedRow> rows;
  for (const std::int64_t seed : {1, 2, 3}) {
    for (const double m : {5.0, 50.0, 500.0}) {
      for (const double n : {100.0, 1000.0})
        rows.push_back(planted(seed, m, n, 0.1 * static_cast<double>(seed), -0.5));
    }
  }
  rows.push_back(planted(1, 5.0, 10.0, 0.0, 0.0));
  rows.back().row.values["gap"] = -1.0;  // has no logarithm
  const auto slopes = log_slopes(rows, "gap", {"m", "n"});
  ASSERT_EQ(slopes.size(), 2U);
  EXPECT_EQ(slopes[0].units, 3U);
  EXPECT_NEAR(slopes[0].mean, 0.2, 1e-12);
  // t_{0.975} of 2 degrees of freedom, times the deviation 0.1, over √3.
  EXPECT_NEAR(slopes[0].half_width, 4.302652729911275 * 0.1 / std::sqrt(3.0), 1e-9);
  EXPECT_NEAR(slopes[1].mean, -0.5, 1e-12);
  EXPECT_NEAR(slopes[1].half_width, 0.0, 1e-9);
}

TEST(TheoryClaim, ComparesIntervalsWithBounds) {
  TheoryClaim claim;
  const auto verdict = [&](double mean, double half) {
    claim.estimate.mean = mean;
    claim.estimate.half_width = half;
    return claim.verdict();
  };
  EXPECT_EQ(verdict(0.0, 0.1), "–");
  claim.at_most = 0.0;
  EXPECT_EQ(verdict(-0.5, 0.2), "holds");
  EXPECT_EQ(verdict(-0.05, 0.02), "holds, reached");
  EXPECT_EQ(verdict(0.04, 0.005), "holds, reached");
  EXPECT_EQ(verdict(0.0, 0.2), "open");
  EXPECT_EQ(verdict(0.3, 0.2), "above");
  claim.is_difference = true;
  EXPECT_EQ(verdict(0.04, 0.005), "above");
  EXPECT_EQ(verdict(-0.04, 0.005), "holds");
  EXPECT_EQ(verdict(-0.04, 0.1), "open");
}

TEST(GeneralisationFindings, NameTheSlopesOfALoss) {
  std::vector<StudiedRow> rows;
  for (const std::int64_t seed : {1, 2}) {
    for (const double m : {50.0, 100.0, 500.0}) {
      for (const double n : {100.0, 1000.0}) rows.push_back(planted(seed, m, n, -0.02, -0.7));
    }
  }
  const GeneralisationFindings found = find_generalisation(rows);
  const auto claim = std::find_if(found.claims.begin(), found.claims.end(), [](const TheoryClaim& one) {
    return one.subject == "listnet, noise by query" && one.quantity == "b: slope over m";
  });
  ASSERT_NE(claim, found.claims.end());
  EXPECT_NEAR(claim->estimate.mean, -0.02, 1e-9);
  EXPECT_EQ(claim->verdict(), "holds, reached");
  EXPECT_EQ(found.seeds, 2U);
  EXPECT_FALSE(found.figures.empty());
}

}  // namespace
}  // namespace olrank
