#include "sim/click_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/sim/play_users.h"
#include "tests/support/chi_square.h"

namespace olrank {
namespace {

constexpr StopDraw kRules[] = {StopDraw::kAfterClick, StopDraw::kEveryDoc};

/// P(pattern) of a three-document list, by going through every outcome of every coin.
std::vector<double> pattern_probabilities(const ClickTable& table, StopDraw rule, double noise,
                                          const std::vector<std::uint8_t>& grades) {
  std::vector<double> probabilities(std::size_t{1} << (2 * grades.size()), 0.0);
  const std::size_t coins = 3 * grades.size();
  for (std::size_t outcome = 0; outcome < (std::size_t{1} << coins); ++outcome) {
    double probability = 1.0;
    std::size_t pattern = 0;
    bool stopped = false;
    for (std::size_t rank = 0; rank < grades.size(); ++rank) {
      const double click = table.click[grades[rank]];
      const double stop = table.stop[grades[rank]];
      const bool wants = (outcome >> (3 * rank) & 1) != 0;
      const bool leaves = (outcome >> (3 * rank + 1) & 1) != 0;
      const bool flips = (outcome >> (3 * rank + 2) & 1) != 0;
      probability *=
          (wants ? click : 1.0 - click) * (leaves ? stop : 1.0 - stop) * (flips ? noise : 1.0 - noise);
      if (stopped) continue;
      const bool observed = wants != flips;
      pattern |= std::size_t{observed ? 3U : 2U} << (2 * rank);
      stopped = leaves && (observed || rule == StopDraw::kEveryDoc);
    }
    probabilities[pattern] += probability;
  }
  return probabilities;
}

/// The whole law of a short list at once: that coins are independent, that noise flips examined documents
/// alone, and that a stop follows the observed click. 8 statistics: false alarms in 8e-10 of all keys.
TEST(DependentClickModelTest, LogsHaveExactProbabilities) {
  const ClickTable tables[] = {{{0.3, 0.6, 0.8}, {0.25, 0.5, 0.75}}, built_in_table("navigational", 3)};
  const std::vector<std::uint8_t> grades = {1, 0, 2};
  for (const ClickTable& table : tables) {
    for (const StopDraw rule : kRules) {
      for (const double noise : {0.0, 0.15}) {
        const auto counts = pattern_counts(DependentClickModel(table, rule, noise), grades, 60'000);
        const ChiSquare logs = chi_square(counts, pattern_probabilities(table, rule, noise, grades));
        EXPECT_FALSE(logs.impossible_seen) << name_of(rule) << noise;
        EXPECT_GE(logs.degrees, 5);
        EXPECT_LE(logs.statistic, logs.bound(kTail)) << name_of(rule) << noise;
      }
    }
  }
}

TEST(DependentClickModelTest, NoiseOfOneFlipsEveryClickAndStopsFollowObservedClicks) {
  // A user who always stops after a click, and whose clicks are all flipped, stops at the first document
  // that would not have been clicked.
  const DependentClickModel user({{0.0, 1.0}, {1.0, 1.0}}, StopDraw::kAfterClick, 1.0);
  ClickLog log;
  const std::vector<std::uint8_t> grades = {1, 1, 0, 0};
  user.click({grades}, in_order(4), user_key(), 1, log);
  EXPECT_EQ(log.clicks, (std::vector<std::uint8_t>{0, 0, 1, 0}));
  EXPECT_EQ(log.examined, (std::vector<std::uint8_t>{1, 1, 1, 0}));
}

TEST(DependentClickModelTest, DrawsDependOnDocumentNotOnRankOrNeighbours) {
  const ClickTable table = built_in_table("informational", 5);
  const std::vector<std::uint8_t> grades = {0, 1, 2, 3, 4, 3, 2, 1};
  const std::vector<std::int32_t> lists[] = {{0, 1, 2, 3, 4, 5, 6, 7}, {7, 3, 5, 0, 6, 2, 4, 1}, {5, 2}};
  for (const StopDraw rule : kRules) {
    for (const double noise : {0.0, 0.2}) {
      const DependentClickModel user(table, rule, noise);
      std::int64_t compared = 0;
      std::int64_t clicks = 0;
      for (std::uint32_t round = 1; round <= 500; ++round) {
        std::vector<int> decision(grades.size(), -1);
        for (const auto& shown : lists) {
          ClickLog log;
          user.click({grades}, shown, user_key(), round, log);
          for (std::size_t rank = 0; rank < shown.size(); ++rank) {
            if (log.examined[rank] == 0) continue;
            int& known = decision[shown[rank]];
            if (known >= 0) {
              ++compared;
              clicks += known;
              ASSERT_EQ(known, log.clicks[rank]);
            }
            known = log.clicks[rank];
          }
        }
      }
      EXPECT_GT(compared, 300);
      EXPECT_GT(clicks, 50);
      EXPECT_GT(compared - clicks, 50);
    }
  }
}

TEST(DependentClickModelTest, NoiseAndStopsDoNotShiftOtherDraws) {
  // Whatever flips the log, and whether or not the user may stop, the click coin of a document is the same.
  const std::vector<std::uint8_t> grades = {0, 1, 1, 0};
  const DependentClickModel plain({{0.4, 0.6}, {}}, StopDraw::kEveryDoc, 0.0);
  const DependentClickModel inverted({{0.4, 0.6}, {}}, StopDraw::kEveryDoc, 1.0);
  const DependentClickModel hasty({{0.4, 0.6}, {0.5, 0.5}}, StopDraw::kEveryDoc, 0.0);
  ClickLog calm;
  ClickLog other;
  for (std::uint32_t round = 1; round <= 200; ++round) {
    plain.click({grades}, in_order(4), user_key(), round, calm);
    inverted.click({grades}, in_order(4), user_key(), round, other);
    for (std::size_t rank = 0; rank < 4; ++rank) ASSERT_EQ(calm.clicks[rank] + other.clicks[rank], 1);
    hasty.click({grades}, in_order(4), user_key(), round, other);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      ASSERT_EQ(other.clicks[rank], other.examined[rank] * calm.clicks[rank]);
    }
  }
}

TEST(DependentClickModelTest, RoundsAndKeysHaveIndependentDraws) {
  const DependentClickModel user({{0.5}, {}}, StopDraw::kAfterClick, 0.0);
  const std::vector<std::uint8_t> grades(64, 0);
  ClickLog log;
  user.click({grades}, in_order(64), user_key(), 1, log);
  const auto first = log.clicks;
  user.click({grades}, in_order(64), user_key(), 2, log);
  EXPECT_NE(log.clicks, first);
  user.click({grades}, in_order(64), user_key(2), 1, log);
  EXPECT_NE(log.clicks, first);
  user.click({grades}, in_order(64), user_key(), 1, log);
  EXPECT_EQ(log.clicks, first);
}

TEST(DependentClickModelTest, ReusesAndClearsLog) {
  const DependentClickModel user(built_in_table("perfect", 2), StopDraw::kAfterClick, 0.0);
  const std::vector<std::uint8_t> relevant(10, 1);
  ClickLog log;
  user.click({relevant}, in_order(10), user_key(), 1, log);
  EXPECT_EQ(log.clicks, std::vector<std::uint8_t>(10, 1));
  const std::uint8_t* const memory = log.clicks.data();
  const std::vector<std::uint8_t> irrelevant(10, 0);
  user.click({irrelevant}, in_order(4), user_key(), 2, log);
  EXPECT_EQ(log.clicks, std::vector<std::uint8_t>(4, 0));
  EXPECT_EQ(log.examined, std::vector<std::uint8_t>(4, 1));
  user.click({irrelevant}, in_order(10), user_key(), 3, log);
  EXPECT_EQ(log.clicks.data(), memory);
  user.click({irrelevant}, {}, user_key(), 4, log);
  EXPECT_TRUE(log.clicks.empty() && log.examined.empty());
}

}  // namespace
}  // namespace olrank
