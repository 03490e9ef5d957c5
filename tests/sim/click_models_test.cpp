#include "sim/click_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "sim/external_user.h"
#include "tests/sim/play_users.h"
#include "tests/support/chi_square.h"
#include "tests/support/message_of.h"

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

const std::vector<double> kTables[] = {{0.1, 0.9}, {0.6, 0.3}, {0.0, 0.5}};

ChangingUser changing(std::int64_t every, bool repeat) {
  std::vector<std::unique_ptr<ClickModel>> intents;
  for (const std::vector<double>& table : kTables)
    intents.push_back(std::make_unique<CascadeClickModel>(table, 0.0));
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
    CascadeClickModel(kTables[(round - 1) / 3 % 3], 0.0)
        .click({grades}, in_order(4), user_key(), round, expected);
    ASSERT_EQ(log.clicks, expected.clicks) << round;
    ASSERT_EQ(log.examined, expected.examined) << round;
  }
}

/// P(click at the first rank) is that of the intent. One statistic for each of six (intent, grade): a false
/// alarm in 6e-10 of all keys.
TEST(ChangingUserTest, ClickRatesChangeWithTheIntent) {
  const ChangingUser user = changing(1, true);
  for (std::uint8_t grade = 0; grade < 2; ++grade) {
    std::vector<std::int64_t> clicks(3, 0);
    std::uint32_t round = 0;
    play(user, {grade}, 60'000, [&](const ClickLog& log) { clicks[round++ % 3] += log.clicks[0]; });
    for (std::size_t intent = 0; intent < 3; ++intent) {
      const double click = kTables[intent][grade];
      EXPECT_TRUE(counts_follow(std::vector<std::int64_t>{clicks[intent], 20'000 - clicks[intent]},
                                std::vector<double>{click, 1.0 - click}, kTail))
          << intent;
    }
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

const DynamicBayesianTable kTable = {{0.2, 0.5, 0.9}, {0.1, 0.4, 0.7}, 0.8};

double observed(double click, double noise) {
  return click * (1.0 - noise) + (1.0 - click) * noise;
}

/// P(pattern): a run of examined ranks, and why it ends.
std::vector<double> pattern_probabilities(double noise, const std::vector<std::uint8_t>& grades) {
  const std::size_t docs = grades.size();
  std::vector<double> probabilities(std::size_t{1} << (2 * docs), 0.0);
  for (std::size_t clicks = 0; clicks < std::size_t{1} << docs; ++clicks) {
    double reached = 1.0;  // P(the clicks above, and this rank is examined)
    std::size_t pattern = 0;
    for (std::size_t rank = 0; rank < docs; ++rank) {
      const bool clicked = (clicks >> rank & 1) != 0;
      const double click = observed(kTable.attraction[grades[rank]], noise);
      const double seen = reached * (clicked ? click : 1.0 - click);
      pattern |= std::size_t{clicked ? 3U : 2U} << (2 * rank);
      const double on = kTable.perseverance * (clicked ? 1.0 - kTable.satisfaction[grades[rank]] : 1.0);
      // Each pattern that ends here comes up once for each choice of the clicks below; count the first.
      if (clicks >> (rank + 1) == 0) probabilities[pattern] += seen * (rank + 1 < docs ? 1.0 - on : 1.0);
      reached = seen * on;
    }
  }
  return probabilities;
}

/// One statistic a setting, two in all: a false alarm in 2e-10 of all keys.
TEST(DynamicBayesianClickModelTest, LogsHaveExactProbabilities) {
  const std::vector<std::uint8_t> grades = {1, 0, 2, 1};
  for (const double noise : {0.0, 0.15}) {
    const auto counts = pattern_counts(DynamicBayesianClickModel(kTable, noise), grades, 100'000);
    const std::vector<double> probabilities = pattern_probabilities(noise, grades);
    double total = 0.0;
    for (const double probability : probabilities) total += probability;
    ASSERT_NEAR(total, 1.0, 1e-12);
    const ChiSquare logs = chi_square(counts, probabilities);
    EXPECT_FALSE(logs.impossible_seen);
    EXPECT_GE(logs.degrees, 20);
    EXPECT_LE(logs.statistic, logs.bound(kTail)) << noise;
  }
}

TEST(DynamicBayesianClickModelTest, WithoutImpatienceIsTheDependentModel) {
  DynamicBayesianTable patient = kTable;
  patient.perseverance = 1.0;
  const DynamicBayesianClickModel user(patient, 0.1);
  const DependentClickModel dependent({kTable.attraction, kTable.satisfaction}, StopDraw::kAfterClick, 0.1);
  const std::vector<std::uint8_t> grades = {0, 2, 1, 0, 2, 1};
  ClickLog other;
  std::uint32_t round = 0;
  play(user, grades, 500, [&](const ClickLog& log) {
    dependent.click({grades}, in_order(grades.size()), user_key(), ++round, other);
    ASSERT_EQ(log.clicks, other.clicks);
    ASSERT_EQ(log.examined, other.examined);
  });
}

TEST(DynamicBayesianClickModelTest, StopsAtOnceWithoutPerseverance) {
  const std::vector<std::uint8_t> grades = {0, 1, 1};
  ClickLog log;
  DynamicBayesianClickModel({{0.0, 1.0}, {}, 0.0}, 0.0).click({grades}, in_order(3), user_key(), 1, log);
  EXPECT_EQ(log.examined, (std::vector<std::uint8_t>{1, 0, 0}));
  DynamicBayesianClickModel({{0.0, 1.0}, {}, 1.0}, 0.0).click({grades}, in_order(3), user_key(), 1, log);
  EXPECT_EQ(log.clicks, (std::vector<std::uint8_t>{0, 1, 1}));
}

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
