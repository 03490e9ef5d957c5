#include "sim/click_models.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/sim/play_users.h"
#include "tests/support/chi_square.h"

namespace olrank {
namespace {

const std::vector<double> kClickByGrade = {0.2, 0.9};

/// P(pattern) as the product over ranks.
std::vector<double> pattern_probabilities(const std::vector<double>& examination, double noise,
                                          const std::vector<std::uint8_t>& grades) {
  std::vector<double> probabilities(std::size_t{1} << (2 * grades.size()), 1.0);
  for (std::size_t pattern = 0; pattern < probabilities.size(); ++pattern) {
    for (std::size_t rank = 0; rank < grades.size(); ++rank) {
      const bool clicked = (pattern >> (2 * rank) & 1) != 0;
      const bool examined = (pattern >> (2 * rank + 1) & 1) != 0;
      const double click = kClickByGrade[grades[rank]];
      const double observed = click * (1.0 - noise) + (1.0 - click) * noise;
      probabilities[pattern] *= examined ? examination[rank] * (clicked ? observed : 1.0 - observed)
                                         : (clicked ? 0.0 : 1.0 - examination[rank]);
    }
  }
  return probabilities;
}

/// One statistic a setting, six in all: a false alarm in 6e-10 of all keys.
TEST(PositionClickModelTest, LogsHaveExactProbabilities) {
  const std::vector<std::uint8_t> grades = {1, 0, 1};
  const auto check = [&](const PositionClickModel& user, const std::vector<double>& examination,
                         double noise) {
    const auto counts = pattern_counts(user, grades, 60'000);
    const ChiSquare logs = chi_square(counts, pattern_probabilities(examination, noise, grades));
    EXPECT_FALSE(logs.impossible_seen);
    EXPECT_GE(logs.degrees, 7);
    EXPECT_LE(logs.statistic, logs.bound(kTail));
  };
  for (const double noise : {0.0, 0.2}) {
    check({kClickByGrade, {}, 1.0, noise}, {1.0, 1.0 / 2.0, 1.0 / 3.0}, noise);
    check({kClickByGrade, {}, 0.5, noise}, {1.0, std::sqrt(1.0 / 2.0), std::sqrt(1.0 / 3.0)}, noise);
    check({kClickByGrade, {0.3, 0.9, 0.6}, 1.0, noise}, {0.3, 0.9, 0.6}, noise);
  }
}

TEST(PositionClickModelTest, ExaminationEndsWithItsTableAndNeverWithZeroBias) {
  const std::vector<std::uint8_t> grades(20, 1);
  ClickLog log;
  PositionClickModel({0.0, 1.0}, {1.0, 1.0}, 0.0, 0.0).click({grades}, in_order(20), user_key(), 1, log);
  std::vector<std::uint8_t> two(20, 0);
  two[0] = two[1] = 1;
  EXPECT_EQ(log.examined, two);
  EXPECT_EQ(log.clicks, two);
  PositionClickModel({0.0, 1.0}, {}, 0.0, 0.0).click({grades}, in_order(20), user_key(), 1, log);
  EXPECT_EQ(log.examined, std::vector<std::uint8_t>(20, 1));
}

TEST(PositionClickModelTest, NoiseDoesNotClickUnexaminedDocuments) {
  const std::vector<std::uint8_t> grades(3, 0);
  ClickLog log;
  PositionClickModel({0.0, 1.0}, {1.0, 0.0, 1.0}, 1.0, 1.0)
      .click({grades}, in_order(3), user_key(), 1, log);
  EXPECT_EQ(log.clicks, (std::vector<std::uint8_t>{1, 0, 1}));
}

TEST(PositionClickModelTest, ClickDrawsDoNotDependOnRank) {
  const std::vector<std::uint8_t> grades = {0, 1, 0, 1, 0};
  const PositionClickModel user({0.5, 0.6}, {}, 0.3, 0.1);
  const std::vector<std::int32_t> other_order = {4, 3, 2, 1, 0};
  ClickLog log;
  ClickLog other;
  int compared = 0;
  for (std::uint32_t round = 1; round <= 300; ++round) {
    user.click({grades}, in_order(5), user_key(), round, log);
    user.click({grades}, other_order, user_key(), round, other);
    for (std::size_t rank = 0; rank < 5; ++rank) {
      if (log.examined[rank] == 0 || other.examined[4 - rank] == 0) continue;
      ASSERT_EQ(log.clicks[rank], other.clicks[4 - rank]);
      ++compared;
    }
  }
  EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace olrank
