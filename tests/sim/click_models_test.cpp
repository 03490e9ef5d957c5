#include "sim/click_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "sim/external_user.h"
#include "tests/sim/play_users.h"
#include "tests/support/chi_square.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

const std::vector<double> kTables[] = {{0.1, 0.9}, {0.6, 0.3}, {0.0, 0.5}};

ChangingUser changing(std::int64_t every, bool repeat) {
  std::vector<std::unique_ptr<ClickModel>> intents;
  for (const std::vector<double>& table : kTables)
    intents.push_back(std::make_unique<ScanningUser>(ScanTable{table, {1.0, 1.0}}, 0.0));
  return {std::move(intents), every, repeat};
}

std::vector<std::size_t> intents_of(const ChangingUser& user, std::uint32_t rounds) {
  std::vector<std::size_t> intents;
  for (std::uint32_t round = 1; round <= rounds; ++round) intents.push_back(user.intent_of(round));
  return intents;
}

TEST(ChangingUserTest, TakesOneIntentAfterAnother) {
  EXPECT_EQ(intents_of(changing(2, true), 9), (std::vector<std::size_t>{0, 0, 1, 1, 2, 2, 0, 0, 1}));
  EXPECT_EQ(intents_of(changing(2, false), 9), (std::vector<std::size_t>{0, 0, 1, 1, 2, 2, 2, 2, 2}));
  EXPECT_EQ(changing(5'000'000'000, true).intent_of(4'294'967'295), 0U);
}

/// The intent is a function of the round: nothing of earlier rounds, such as of a resumed trial, matters.
TEST(ChangingUserTest, ClicksAsTheRoundsIntentDoes) {
  const ChangingUser user = changing(3, true);
  const std::vector<std::uint8_t> grades = {0, 1, 1, 0};
  ClickLog log;
  ClickLog expected;
  for (std::uint32_t round = 200; round > 0; --round) {
    user.click({grades}, in_order(4), user_key(), round, log);
    cascade_user(kTables[(round - 1) / 3 % 3], 0.0)
        .click({grades}, in_order(4), user_key(), round, expected);
    ASSERT_EQ(log.clicks, expected.clicks) << round;
    ASSERT_EQ(log.examined, expected.examined) << round;
  }
}

using Row = std::vector<double>;

TEST(ClickTablesTest, MatchDocumentedTables) {
  const auto expect = [](const char* user, const Row& click, const Row& stop) {
    const ClickTable table = built_in_table(user, static_cast<int>(click.size()));
    EXPECT_EQ(table.click, click) << user << click.size();
    EXPECT_EQ(table.stop, stop) << user << click.size();
  };
  expect("perfect", {0, .2, .4, .8, 1}, {0, 0, 0, 0, 0});
  expect("perfect", {0, .5, 1}, {0, 0, 0});
  expect("perfect", {0, 1}, {0, 0});
  expect("navigational", {.05, .3, .5, .7, .95}, {.2, .3, .5, .7, .9});
  expect("navigational", {.05, .5, .95}, {.2, .5, .9});
  expect("navigational", {.05, .95}, {.2, .9});
  expect("informational", {.4, .6, .7, .8, .9}, {.1, .2, .3, .4, .5});
  expect("informational", {.4, .7, .9}, {.1, .3, .5});
  expect("informational", {.4, .9}, {.1, .5});
  EXPECT_EQ(built_in_users(), (std::vector<std::string>{"perfect", "navigational", "informational"}));
}

TEST(ClickTablesTest, LargestGradeSelectsTableUnlessStated) {
  const int by_data[] = {2, 2, 3, 5, 5};
  for (int grade = 0; grade <= 4; ++grade) {
    EXPECT_EQ(table_grades("perfect", grade, 0), by_data[grade]) << grade;
    EXPECT_EQ(table_grades("perfect", grade, 5), 5) << grade;
  }
  EXPECT_EQ(table_grades("perfect", 1, 3), 3);
}

TEST(ClickTablesTest, RefusesGradesBeyondTheTable) {
  EXPECT_EQ(message_of<InvalidArgument>([] { table_grades("perfect", 6, 0); }),
            "The data has grade 6, but the tables of the built-in user 'perfect' end at grade 4. Define a "
            "[[user]] with 7 click probabilities.");
  EXPECT_EQ(
      message_of<InvalidArgument>([] { table_grades("navigational", 3, 3); }),
      "The data has grade 3, but with clicks.grades = 3 the table of the built-in user 'navigational' ends "
      "at grade 2. Raise clicks.grades, or define a [[user]] with 4 click probabilities.");
  EXPECT_EQ(message_of<InvalidArgument>([] { table_grades("perfect", 1, 4); }),
            "clicks.grades must be 2, 3 or 5, or 0 to follow the data's largest grade, not 4.");
  EXPECT_NE(message_of<InvalidArgument>([] { table_grades("perfect", 1, -1); }), kNoError);
  EXPECT_NE(message_of<InvalidArgument>([] { built_in_table("perfect", 4); }), kNoError);
  EXPECT_NE(message_of<InvalidArgument>([] { built_in_table("perfekt", 2); }), kNoError);
}

TEST(PositionUserTest, ExaminationEndsWithItsTableAndNeverWithZeroBias) {
  const std::vector<std::uint8_t> grades(20, 1);
  ClickLog log;
  position_user({0.0, 1.0}, {1.0, 1.0}, 0.0, 0.0).click({grades}, in_order(20), user_key(), 1, log);
  std::vector<std::uint8_t> two(20, 0);
  two[0] = two[1] = 1;
  EXPECT_EQ(log.examined, two);
  EXPECT_EQ(log.clicks, two);
  position_user({0.0, 1.0}, {}, 0.0, 0.0).click({grades}, in_order(20), user_key(), 1, log);
  EXPECT_EQ(log.examined, std::vector<std::uint8_t>(20, 1));
}

TEST(PositionUserTest, ClickDrawsDoNotDependOnRank) {
  const std::vector<std::uint8_t> grades = {0, 1, 0, 1, 0};
  const ExaminingUser user = position_user({0.5, 0.6}, {}, 0.3, 0.1);
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

/// One statistic a setting, twelve in all: a false alarm in 12e-10 of all keys.
TEST(ExaminingUserTest, LogsHaveExactProbabilities) {
  const std::vector<std::uint8_t> grades = {1, 0, 1};
  const auto check = [&](const ExaminationTable& table, double noise, const auto& examination) {
    const auto counts = pattern_counts(ExaminingUser(kClick, table, noise), grades, 80'000);
    const ChiSquare logs = chi_square(counts, pattern_probabilities(examination, noise, grades));
    EXPECT_FALSE(logs.impossible_seen);
    EXPECT_GE(logs.degrees, 7);
    EXPECT_LE(logs.statistic, logs.bound(kTail));
  };
  const auto power = [](double exponent, std::size_t distance) {
    return std::pow(1.0 / static_cast<double>(distance), exponent);
  };
  for (const double noise : {0.0, 0.2}) {
    check({{0.9, 0.5, 0.7, 0.2, 0.6, 0.8}, {}, 1.0}, noise, [](std::size_t rank, std::size_t last) {
      const double table[3][3] = {{0.9}, {0.5, 0.7}, {0.2, 0.6, 0.8}};
      return table[rank - 1][last];
    });
    check({{}, {0.9, 0.6, 0.3}, 1.0}, noise, [](std::size_t rank, std::size_t last) {
      return 0.9 - 0.3 * static_cast<double>(rank - last - 1);
    });
    check({{}, {}, 0.5}, noise,
          [&](std::size_t rank, std::size_t last) { return power(0.5, rank - last); });
    // By rank alone: the position-based model.
    check({{}, {}, 1.0, false}, noise, [&](std::size_t rank, std::size_t) { return power(1.0, rank); });
    check({{}, {}, 0.5, false}, noise, [&](std::size_t rank, std::size_t) { return power(0.5, rank); });
    check({{}, {0.3, 0.9, 0.6}, 1.0, false}, noise, [](std::size_t rank, std::size_t) {
      return std::array{0.3, 0.9, 0.6}[rank - 1];
    });
  }
}

TEST(BrowsingUserTest, IsThePositionModelWhereTheLastClickDoesNotMatter) {
  const ExaminingUser user(kClick, {{0.9, 0.5, 0.5, 0.2, 0.2, 0.2}, {}, 1.0}, 0.1);
  const ExaminingUser position = position_user(kClick, {0.9, 0.5, 0.2}, 1.0, 0.1);
  const std::vector<std::uint8_t> grades = {1, 0, 1, 1};  // the fourth is beyond both tables
  ClickLog other;
  std::uint32_t round = 0;
  play(user, grades, 500, [&](const ClickLog& log) {
    position.click({grades}, in_order(grades.size()), user_key(), ++round, other);
    ASSERT_EQ(log.clicks, other.clicks);
    ASSERT_EQ(log.examined, other.examined);
  });
}

TEST(BrowsingUserTest, ExaminationEndsWithItsTable) {
  const ExaminationTable by_distance{{}, {1.0, 0.5}, 1.0};
  EXPECT_EQ(by_distance.examination(7, 6), 1.0);
  EXPECT_EQ(by_distance.examination(7, 5), 0.5);
  EXPECT_EQ(by_distance.examination(7, 4), 0.0);
  const ExaminationTable by_last_click{{1.0, 0.5, 0.25}, {}, 1.0};
  EXPECT_EQ(by_last_click.examination(2, 1), 0.25);
  EXPECT_EQ(by_last_click.examination(3, 2), 0.0);
}

constexpr StopDraw kRules[] = {StopDraw::kAfterClick, StopDraw::kEveryDoc};

/// P(pattern) of a short list, by going through every outcome of every coin.
std::vector<double> pattern_probabilities(const ScanTable& table, double noise,
                                          const std::vector<std::uint8_t>& grades) {
  std::vector<double> probabilities(std::size_t{1} << (2 * grades.size()), 0.0);
  for (std::size_t outcome = 0; outcome < (std::size_t{1} << (4 * grades.size())); ++outcome) {
    double probability = 1.0;
    std::size_t pattern = 0;
    bool stopped = false;
    std::size_t coins = outcome;
    const auto lands = [&](double chance) {
      const bool landed = (coins & 1U) != 0;
      coins >>= 1;
      probability *= landed ? chance : 1.0 - chance;
      return landed;
    };
    for (std::size_t rank = 0; rank < grades.size(); ++rank) {
      const bool wants = lands(table.click[grades[rank]]);
      const bool leaves = lands(table.stop[grades[rank]]);
      const bool flips = lands(noise);
      const bool perseveres = lands(table.perseverance);
      if (stopped) continue;
      const bool observed = wants != flips;
      pattern |= std::size_t{observed ? 3U : 2U} << (2 * rank);
      stopped = (leaves && (observed || table.stop_draw == StopDraw::kEveryDoc)) || !perseveres;
    }
    probabilities[pattern] += probability;
  }
  return probabilities;
}

/// The whole law of a short list at once: that coins are independent, that noise flips examined documents
/// alone, and that a stop follows the observed click. 12 statistics: false alarms in 12e-10 of all keys.
TEST(ScanningUserTest, LogsHaveExactProbabilities) {
  const ClickTable three = built_in_table("navigational", 3);
  // In longer lists two documents share a grade.
  const std::vector<std::uint8_t> short_list = {1, 0, 2};
  const std::vector<std::uint8_t> long_list = {1, 0, 2, 1};
  for (const ScanTable& table :
       {ScanTable{{0.3, 0.6, 0.8}, {0.25, 0.5, 0.75}},
        ScanTable{{0.3, 0.6, 0.8}, {0.25, 0.5, 0.75}, StopDraw::kEveryDoc},
        ScanTable{three.click, three.stop}, ScanTable{three.click, three.stop, StopDraw::kEveryDoc},
        ScanTable{{0.2, 0.5, 0.9}, {0.1, 0.4, 0.7}, StopDraw::kAfterClick, 0.8},
        ScanTable{{0.1, 0.5, 0.3}, {1.0, 1.0, 1.0}}}) {
    const bool is_chain = table.perseverance < 1.0 || table.stop[0] == 1.0;
    const std::vector<std::uint8_t>& grades = is_chain ? long_list : short_list;
    for (const double noise : {0.0, 0.15}) {
      const auto counts = pattern_counts(ScanningUser(table, noise), grades, 60'000);
      const ChiSquare logs = chi_square(counts, pattern_probabilities(table, noise, grades));
      EXPECT_FALSE(logs.impossible_seen) << table.click[0] << name_of(table.stop_draw) << noise;
      EXPECT_GE(logs.degrees, 3);
      EXPECT_LE(logs.statistic, logs.bound(kTail)) << table.click[0] << name_of(table.stop_draw) << noise;
    }
  }
}

TEST(DependentUserTest, DrawsDependOnDocumentNotOnRankOrNeighbours) {
  const ClickTable table = built_in_table("informational", 5);
  const std::vector<std::uint8_t> grades = {0, 1, 2, 3, 4, 3, 2, 1};
  const std::vector<std::int32_t> lists[] = {{0, 1, 2, 3, 4, 5, 6, 7}, {7, 3, 5, 0, 6, 2, 4, 1}, {5, 2}};
  for (const StopDraw rule : kRules) {
    for (const double noise : {0.0, 0.2}) {
      const ScanningUser user = dependent_user(table, rule, noise);
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

TEST(DependentUserTest, NoiseAndStopsDoNotShiftOtherDraws) {
  // Whatever flips the log, and whether or not the user may stop, the click coin of a document is the same.
  const std::vector<std::uint8_t> grades = {0, 1, 1, 0};
  const ScanningUser plain = dependent_user({{0.4, 0.6}, {}}, StopDraw::kEveryDoc, 0.0);
  const ScanningUser inverted = dependent_user({{0.4, 0.6}, {}}, StopDraw::kEveryDoc, 1.0);
  const ScanningUser hasty = dependent_user({{0.4, 0.6}, {0.5, 0.5}}, StopDraw::kEveryDoc, 0.0);
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

TEST(DependentUserTest, RoundsAndKeysHaveIndependentDraws) {
  const ScanningUser user = dependent_user({{0.5}, {}}, StopDraw::kAfterClick, 0.0);
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

TEST(DependentUserTest, ReusesAndClearsLog) {
  const ScanningUser user = dependent_user(built_in_table("perfect", 2), StopDraw::kAfterClick, 0.0);
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
