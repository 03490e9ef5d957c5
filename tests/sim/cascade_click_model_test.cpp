#include "sim/click_models.h"

#include <gtest/gtest.h>

#include "tests/sim/play_users.h"
#include "tests/support/chi_square.h"

namespace olrank {
namespace {

/// Two statistics: a false alarm in 2e-10 of all keys.
TEST(CascadeClickModelTest, StopsAtFirstClickWithExactProbabilities) {
  const std::vector<double> click = {0.1, 0.5, 0.3};
  const std::vector<std::uint8_t> grades = {0, 2, 1, 0, 2};
  for (const double noise : {0.0, 0.25}) {
    std::vector<double> probabilities;  // of a click at each rank, and of none
    double reached = 1.0;
    for (const std::uint8_t grade : grades) {
      const double observed = click[grade] * (1.0 - noise) + (1.0 - click[grade]) * noise;
      probabilities.push_back(reached * observed);
      reached *= 1.0 - observed;
    }
    probabilities.push_back(reached);
    std::vector<std::int64_t> counts(probabilities.size(), 0);
    play(CascadeClickModel(click, noise), grades, 50'000, [&](const ClickLog& log) {
      std::size_t rank = 0;
      while (rank < grades.size() && log.clicks[rank] == 0) ++rank;
      ++counts[rank];
      for (std::size_t other = 0; other < grades.size(); ++other) {
        ASSERT_EQ(log.examined[other], other <= rank ? 1 : 0);
        ASSERT_EQ(log.clicks[other], other == rank ? 1 : 0);
      }
    });
    const ChiSquare ends = chi_square(counts, probabilities);
    EXPECT_EQ(ends.degrees, 5);
    EXPECT_LE(ends.statistic, ends.bound(kTail)) << noise;
  }
}

TEST(CascadeClickModelTest, ProbabilitiesZeroAndOneAreDeterministic) {
  const std::vector<std::uint8_t> grades = {0, 1, 1};
  ClickLog log;
  CascadeClickModel({0.0, 1.0}, 0.0).click({grades}, in_order(3), user_key(), 1, log);
  EXPECT_EQ(log.clicks, (std::vector<std::uint8_t>{0, 1, 0}));
  EXPECT_EQ(log.examined, (std::vector<std::uint8_t>{1, 1, 0}));
  CascadeClickModel({0.0, 1.0}, 1.0).click({grades}, in_order(3), user_key(), 1, log);
  EXPECT_EQ(log.clicks, (std::vector<std::uint8_t>{1, 0, 0}));
}

}  // namespace
}  // namespace olrank
