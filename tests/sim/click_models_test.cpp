#include "sim/click_models.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/online/online_ranker.h"
#include "sim/external_user.h"
#include "sim/trial_settings.h"
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

TEST(ExaminingUserTest, ExaminationEndsWithItsTableAndNeverWithZeroBias) {
  const ExaminationTable by_rank{{}, {1.0, 0.5}, 0.0, false};
  EXPECT_EQ(by_rank.examination(2, 0), 0.5);
  EXPECT_EQ(by_rank.examination(3, 0), 0.0);
  ClickLog log;
  position_user({0.0, 1.0}, {}, 0.0, 0.0)
      .click({std::vector<std::uint8_t>(20, 1)}, in_order(20), user_key(), 1, log);
  EXPECT_EQ(log.examined, std::vector<std::uint8_t>(20, 1));
  const ExaminationTable by_distance{{}, {1.0, 0.5}, 1.0};
  EXPECT_EQ(by_distance.examination(7, 6), 1.0);
  EXPECT_EQ(by_distance.examination(7, 5), 0.5);
  EXPECT_EQ(by_distance.examination(7, 4), 0.0);
  const ExaminationTable by_last_click{{1.0, 0.5, 0.25}, {}, 1.0};
  EXPECT_EQ(by_last_click.examination(2, 1), 0.25);
  EXPECT_EQ(by_last_click.examination(3, 2), 0.0);
}

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

TEST(UserDrawsTest, DependOnDocumentNotOnRankOrNeighbours) {
  const ClickTable table = built_in_table("informational", 5);
  const std::vector<std::uint8_t> grades = {0, 1, 2, 3, 4, 3, 2, 1};
  const std::vector<std::int32_t> lists[] = {{0, 1, 2, 3, 4, 5, 6, 7}, {7, 3, 5, 0, 6, 2, 4, 1}, {5, 2}};
  std::vector<std::unique_ptr<ClickModel>> users;
  for (const double noise : {0.0, 0.2}) {
    for (const StopDraw rule : {StopDraw::kAfterClick, StopDraw::kEveryDoc})
      users.push_back(std::make_unique<ScanningUser>(ScanTable{table.click, table.stop, rule}, noise));
    users.push_back(
        std::make_unique<ExaminingUser>(table.click, ExaminationTable{{}, {}, 0.3, false}, noise));
  }
  for (const auto& user : users) {
    std::int64_t compared = 0;
    std::int64_t clicks = 0;
    for (std::uint32_t round = 1; round <= 500; ++round) {
      std::vector<int> decision(grades.size(), -1);
      for (const std::vector<std::int32_t>& shown : lists) {
        ClickLog log;
        user->click({grades}, shown, user_key(), round, log);
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

UserSettings custom(const std::string& name) {
  UserSettings user;
  user.name = name;
  user.click = {0.1, 0.5, 0.9};
  return user;
}

std::string complaint_about(const std::function<void(UserSettings&)>& spoil) {
  std::vector<UserSettings> users = {custom("mine")};
  spoil(users[0]);
  std::string checked = message_of<InvalidArgument>([&] { check_users({}, users); });
  EXPECT_EQ(message_of<InvalidArgument>([&] { make_user("mine", {}, users, 2); }), checked);
  return checked;
}

/// Both users leave the same logs.
void expect_same(const ClickModel& user, const ClickModel& other, int max_grade) {
  std::vector<std::uint8_t> grades(12);
  for (std::size_t doc = 0; doc < grades.size(); ++doc) {
    grades[doc] = static_cast<std::uint8_t>(doc % static_cast<std::size_t>(max_grade + 1));
  }
  ClickLog log;
  ClickLog other_log;
  for (std::uint32_t round = 1; round <= 500; ++round) {
    user.click({grades}, in_order(grades.size()), user_key(), round, log);
    other.click({grades}, in_order(grades.size()), user_key(), round, other_log);
    ASSERT_EQ(log.clicks, other_log.clicks) << round;
    ASSERT_EQ(log.examined, other_log.examined) << round;
  }
}

TEST(UsersTest, BuiltInUsersFollowTheClickSettings) {
  ClickSettings clicks;
  const ClickTable table = built_in_table("informational", 5);
  const auto expect_like = [&](const ClickModel& other) {
    expect_same(*make_user("informational", clicks, {}, 4), other, 4);
  };
  expect_like(dependent_user(table, StopDraw::kAfterClick, 0.0));
  clicks.stop = StopDraw::kEveryDoc;
  clicks.noise = 0.2;
  expect_like(dependent_user(table, StopDraw::kEveryDoc, 0.2));
  clicks.kind = ClickKind::kCascade;
  expect_like(cascade_user(table.click, 0.2));
  clicks.kind = ClickKind::kPosition;
  clicks.position_bias = 0.4;
  expect_like(position_user(table.click, {}, 0.4, 0.2));
  clicks.kind = ClickKind::kUserBrowsing;
  expect_like(ExaminingUser(table.click, {{}, {}, 0.4}, 0.2));
  clicks.kind = ClickKind::kDynamicBayesian;
  clicks.perseverance = 0.7;
  expect_like(ScanningUser({table.click, table.stop, StopDraw::kAfterClick, 0.7}, 0.2));
}

TEST(UsersTest, GradesAreMappedToThoseOfASmallerTable) {
  ClickSettings clicks;
  clicks.grade_map = {0, 0, 1, 1, 2};
  const ClickTable three = built_in_table("navigational", 3);
  const ClickTable mapped = {
      {three.click[0], three.click[0], three.click[1], three.click[1], three.click[2]},
      {three.stop[0], three.stop[0], three.stop[1], three.stop[1], three.stop[2]}};
  const auto expect_mapped = [&](int max_grade) {
    expect_same(*make_user("navigational", clicks, {}, max_grade),
                dependent_user(mapped, StopDraw::kAfterClick, 0.0), max_grade);
  };
  expect_mapped(4);
  clicks.grades = 3;
  expect_mapped(3);
  clicks.grades = 2;
  EXPECT_EQ(message_of<InvalidArgument>([&] {
              make_user("navigational", clicks, {}, 4);
            }).find("The data has grade 2, but with clicks.grades = 2"),
            0U);
  EXPECT_EQ(message_of<InvalidArgument>([&] { make_user("navigational", clicks, {}, 5); }),
            "The data has grade 5, but clicks.grade_map ends at grade 4. Give it 6 grades of the tables.");
}

TEST(UsersTest, CustomUsersFollowTheirOwnSettings) {
  std::vector<UserSettings> users;
  const auto add = [&](const std::string& name, ClickKind kind) -> UserSettings& {
    users.push_back(custom(name));
    users.back().kind = kind;
    return users.back();
  };
  add("mine", ClickKind::kDependent).stop = {0.5, 0.4, 0.3};
  users.back().stop_draw = StopDraw::kEveryDoc;
  users.back().noise = 0.1;
  add("yours", ClickKind::kCascade);
  add("ours", ClickKind::kPosition).examination = {0.9, 0.1};
  add("satisfied", ClickKind::kDynamicBayesian).satisfaction = {0.1, 0.2, 0.3};
  users.back().perseverance = 0.5;
  add("browsing", ClickKind::kUserBrowsing).browsing = {0.9, 0.5, 0.7};
  add("near", ClickKind::kUserBrowsing).examination = {0.9, 0.1};
  add("fickle", ClickKind::kChanging).click.clear();
  users.back().intents = {"near", "perfect"};
  users.back().change_every = 7;
  users.back().repeat = false;
  EXPECT_EQ(message_of<InvalidArgument>([&] { check_users({}, users); }), kNoError);
  // A custom user got what [clicks] says when it was read; the section has no second say.
  ClickSettings clicks;
  clicks.kind = ClickKind::kPosition;
  clicks.noise = 0.9;
  const std::vector<double> click = {0.1, 0.5, 0.9};
  const auto expect_like = [&](const std::string& name, const ClickModel& other, int max_grade = 2) {
    expect_same(*make_user(name, clicks, users, max_grade), other, max_grade);
  };
  expect_like("mine", dependent_user({click, {0.5, 0.4, 0.3}}, StopDraw::kEveryDoc, 0.1));
  expect_like("yours", cascade_user(click, 0.0));
  expect_like("ours", position_user(click, {0.9, 0.1}, 1.0, 0.0));
  // A part whose largest grade is missing still goes by the whole table.
  expect_like("yours", cascade_user(click, 0.0), 1);
  expect_like("satisfied", ScanningUser({click, {0.1, 0.2, 0.3}, StopDraw::kAfterClick, 0.5}, 0.0));
  expect_like("browsing", ExaminingUser(click, {{0.9, 0.5, 0.7}, {}, 1.0}, 0.0));
  expect_like("near", ExaminingUser(click, {{}, {0.9, 0.1}, 1.0}, 0.0));
  std::vector<std::unique_ptr<ClickModel>> intents;
  intents.push_back(make_user("near", clicks, users, 2));
  intents.push_back(make_user("perfect", clicks, users, 2));
  expect_like("fickle", ChangingUser(std::move(intents), 7, false));
  // An intent's table covers the data, too.
  EXPECT_TRUE(
      contains(message_of<InvalidArgument>([&] { make_user("fickle", {}, users, 3); }), "user 'near'"));
}

// tests/jobs/settings/configuration_test.txt refuses what a file can say.
TEST(UsersTest, RefusesProbabilitiesThatAreNone) {
  EXPECT_EQ(complaint_about([](UserSettings&) {}), kNoError);
  EXPECT_EQ(complaint_about([](UserSettings& user) { user.click[1] = 1.5; }),
            "User 'mine': the probabilities in 'click' must be between 0 and 1, not 1.5.");
  EXPECT_EQ(complaint_about([](UserSettings& user) {
              user.stop = {0.1, -0.1, 0.1};
            }),
            "User 'mine': the probabilities in 'stop' must be between 0 and 1, not -0.1.");
  EXPECT_EQ(complaint_about([](UserSettings& user) {
              user.noise = std::numeric_limits<double>::quiet_NaN();
            }).substr(0, 20),
            "User 'mine': the pro");
}

TEST(UsersTest, RefusesNamesAndGradesThatItsTablesDoNotHave) {
  const std::vector<UserSettings> users = {custom("mine")};
  EXPECT_NE(message_of<InvalidArgument>([&] { make_user("theirs", {}, users, 1); }), kNoError);
  EXPECT_EQ(
      message_of<InvalidArgument>([&] { make_user("mine", {}, users, 3); }),
      "The data has grade 3, but the table of user 'mine' ends at grade 2. Give it 4 click probabilities.");
}

TEST(SimSettingsTest, ReferenceFollowsTheAuthorsCode) {
  EXPECT_EQ(ProtocolSettings::defaults(ProtocolName::kPaper).empty_queries, EmptyQueries::kZero);
  EXPECT_EQ(ProtocolSettings::defaults(ProtocolName::kReference).empty_queries, EmptyQueries::kSkip);
  EXPECT_EQ(ClickSettings::defaults(ProtocolName::kPaper).stop, StopDraw::kAfterClick);
  EXPECT_EQ(ClickSettings::defaults(ProtocolName::kReference).stop, StopDraw::kEveryDoc);
}

PhiloxKey key(std::uint64_t seed) {
  return TrialKeys::of(seed, 1, "perfect").key(Purpose::kQuery);
}

/// Two statistics: a false alarm in 2e-10 of all keys.
TEST(UniformQueriesTest, DrawsEveryQueryEquallyOften) {
  for (const std::int64_t queries : {2, 97}) {
    const UniformQueries source(key(1), queries);
    std::vector<std::int64_t> counts(queries, 0);
    for (std::uint32_t round = 1; round <= 50'000; ++round) {
      const std::int64_t query = source.query_of(round);
      ASSERT_GE(query, 0);
      ASSERT_LT(query, queries);
      ++counts[query];
    }
    const std::vector<double> same(counts.size(), 1.0 / static_cast<double>(queries));
    const ChiSquare uniform = chi_square(counts, same);
    EXPECT_LE(uniform.statistic, uniform.bound(kTail)) << queries;
  }
}

TEST(UniformQueriesTest, IsAFunctionOfTheRoundAndTheKey) {
  const UniformQueries source(key(1), 1'000'000);
  const UniformQueries same(key(1), 1'000'000);
  const UniformQueries other(key(2), 1'000'000);
  int differs = 0;
  for (std::uint32_t round = 100; round > 0; --round) {
    EXPECT_EQ(source.query_of(round), same.query_of(round));
    if (source.query_of(round) != other.query_of(round)) ++differs;
  }
  EXPECT_GT(differs, 90);
  EXPECT_EQ(UniformQueries(key(1), 1).query_of(7), 0);
}

TEST(UniformQueriesTest, RefusesZeroQueries) {
  EXPECT_THROW(UniformQueries(key(1), 0), InvalidArgument);
  EXPECT_THROW(UniformQueries(key(1), -3), InvalidArgument);
  EXPECT_THROW(UniformQueries(key(1), std::int64_t{1} << 32), InvalidArgument);
}

}  // namespace
}  // namespace olrank
