#include "sim/click_models.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/sim/play_users.h"
#include "tests/support/chi_square.h"

namespace olrank {
namespace {

const std::vector<double> kClick = {0.3, 0.8};

/// P(pattern) as the product over ranks, with γ of the last click above.
template <class Examination>
std::vector<double> pattern_probabilities(const Examination& examination, double noise,
                                          const std::vector<std::uint8_t>& grades) {
  std::vector<double> probabilities(std::size_t{1} << (2 * grades.size()), 1.0);
  for (std::size_t pattern = 0; pattern < probabilities.size(); ++pattern) {
    std::size_t last = 0;
    for (std::size_t rank = 1; rank <= grades.size(); ++rank) {
      const bool clicked = (pattern >> (2 * rank - 2) & 1) != 0;
      const bool examined = (pattern >> (2 * rank - 1) & 1) != 0;
      const double click = kClick[grades[rank - 1]];
      const double observed = click * (1.0 - noise) + (1.0 - click) * noise;
      const double gamma = examination(rank, last);
      probabilities[pattern] *=
          examined ? gamma * (clicked ? observed : 1.0 - observed) : (clicked ? 0.0 : 1.0 - gamma);
      if (clicked) last = rank;
    }
  }
  return probabilities;
}

/// One statistic a setting, six in all: a false alarm in 6e-10 of all keys.
TEST(UserBrowsingClickModelTest, LogsHaveExactProbabilities) {
  const std::vector<std::uint8_t> grades = {1, 0, 1};
  const std::vector<double> by_last = {0.9, 0.5, 0.7, 0.2, 0.6, 0.8};
  const auto check = [&](const BrowsingTable& browsing, double noise, const auto& examination) {
    const auto counts = pattern_counts(UserBrowsingClickModel(kClick, browsing, noise), grades, 80'000);
    const ChiSquare logs = chi_square(counts, pattern_probabilities(examination, noise, grades));
    EXPECT_FALSE(logs.impossible_seen);
    EXPECT_GE(logs.degrees, 7);
    EXPECT_LE(logs.statistic, logs.bound(kTail));
  };
  for (const double noise : {0.0, 0.2}) {
    check({by_last, {}, 1.0}, noise, [&](std::size_t rank, std::size_t last) {
      const double table[3][3] = {{0.9}, {0.5, 0.7}, {0.2, 0.6, 0.8}};
      return table[rank - 1][last];
    });
    check({{}, {0.9, 0.6, 0.3}, 1.0}, noise, [](std::size_t rank, std::size_t last) {
      return 0.9 - 0.3 * static_cast<double>(rank - last - 1);
    });
    check({{}, {}, 0.5}, noise, [](std::size_t rank, std::size_t last) {
      return std::sqrt(1.0 / static_cast<double>(rank - last));
    });
  }
}

TEST(UserBrowsingClickModelTest, IsThePositionModelWhereTheLastClickDoesNotMatter) {
  const UserBrowsingClickModel user(kClick, {{0.9, 0.5, 0.5, 0.2, 0.2, 0.2}, {}, 1.0}, 0.1);
  const PositionClickModel position(kClick, {0.9, 0.5, 0.2}, 1.0, 0.1);
  const std::vector<std::uint8_t> grades = {1, 0, 1, 1};  // the fourth is beyond both tables
  ClickLog other;
  std::uint32_t round = 0;
  play(user, grades, 500, [&](const ClickLog& log) {
    position.click({grades}, in_order(grades.size()), user_key(), ++round, other);
    ASSERT_EQ(log.clicks, other.clicks);
    ASSERT_EQ(log.examined, other.examined);
  });
}

TEST(UserBrowsingClickModelTest, ExaminationEndsWithItsTable) {
  const BrowsingTable by_distance{{}, {1.0, 0.5}, 1.0};
  EXPECT_EQ(by_distance.examination(7, 6), 1.0);
  EXPECT_EQ(by_distance.examination(7, 5), 0.5);
  EXPECT_EQ(by_distance.examination(7, 4), 0.0);
  const BrowsingTable by_last_click{{1.0, 0.5, 0.25}, {}, 1.0};
  EXPECT_EQ(by_last_click.examination(2, 1), 0.25);
  EXPECT_EQ(by_last_click.examination(3, 2), 0.0);
}

}  // namespace
}  // namespace olrank
