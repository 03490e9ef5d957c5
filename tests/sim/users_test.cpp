#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/online/online_ranker.h"
#include "sim/click_models.h"
#include "sim/external_user.h"
#include "sim/trial_settings.h"
#include "sim/users.h"
#include "tests/sim/play_users.h"
#include "tests/support/chi_square.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

UserSettings custom(const std::string& name, const ClickSettings& clicks = {}) {
  UserSettings user = UserSettings::defaults(clicks);
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
  expect_same(*make_user("informational", clicks, {}, 4), dependent_user(table, StopDraw::kAfterClick, 0.0),
              4);
  clicks.stop = StopDraw::kEveryDoc;
  clicks.noise = 0.2;
  expect_same(*make_user("informational", clicks, {}, 4), dependent_user(table, StopDraw::kEveryDoc, 0.2),
              4);
  clicks.kind = ClickKind::kCascade;
  expect_same(*make_user("informational", clicks, {}, 4), cascade_user(table.click, 0.2), 4);
  clicks.kind = ClickKind::kPosition;
  clicks.position_bias = 0.4;
  expect_same(*make_user("informational", clicks, {}, 4), position_user(table.click, {}, 0.4, 0.2), 4);
  clicks.kind = ClickKind::kUserBrowsing;
  expect_same(*make_user("informational", clicks, {}, 4), ExaminingUser(table.click, {{}, {}, 0.4}, 0.2),
              4);
  clicks.kind = ClickKind::kDynamicBayesian;
  clicks.perseverance = 0.7;
  expect_same(*make_user("informational", clicks, {}, 4),
              ScanningUser({table.click, table.stop, StopDraw::kAfterClick, 0.7}, 0.2), 4);
}

TEST(UsersTest, GradesAreMappedToThoseOfASmallerTable) {
  ClickSettings clicks;
  clicks.grade_map = {0, 0, 1, 1, 2};
  const ClickTable three = built_in_table("navigational", 3);
  const ClickTable mapped = {
      {three.click[0], three.click[0], three.click[1], three.click[1], three.click[2]},
      {three.stop[0], three.stop[0], three.stop[1], three.stop[1], three.stop[2]}};
  expect_same(*make_user("navigational", clicks, {}, 4), dependent_user(mapped, StopDraw::kAfterClick, 0.0),
              4);
  clicks.grades = 3;
  expect_same(*make_user("navigational", clicks, {}, 3), dependent_user(mapped, StopDraw::kAfterClick, 0.0),
              3);
  clicks.grades = 2;
  EXPECT_EQ(message_of<InvalidArgument>([&] {
              make_user("navigational", clicks, {}, 4);
            }).find("The data has grade 2, but with clicks.grades = 2"),
            0U);
  EXPECT_EQ(message_of<InvalidArgument>([&] { make_user("navigational", clicks, {}, 5); }),
            "The data has grade 5, but clicks.grade_map ends at grade 4. Give it 6 grades of the tables.");
}

TEST(UsersTest, CustomUsersFollowTheirOwnTable) {
  std::vector<UserSettings> users = {custom("mine"), custom("yours"), custom("ours")};
  users[0].stop = {0.5, 0.4, 0.3};
  users[0].stop_draw = StopDraw::kEveryDoc;
  users[0].noise = 0.1;
  users[1].kind = ClickKind::kCascade;
  users[2].kind = ClickKind::kPosition;
  users[2].examination = {0.9, 0.1};
  const std::vector<double> click = {0.1, 0.5, 0.9};
  // What [clicks] says was given to a custom user when it was read; it has no second say.
  ClickSettings clicks;
  clicks.kind = ClickKind::kPosition;
  clicks.noise = 0.9;
  expect_same(*make_user("mine", clicks, users, 2),
              dependent_user({click, {0.5, 0.4, 0.3}}, StopDraw::kEveryDoc, 0.1), 2);
  expect_same(*make_user("yours", clicks, users, 2), cascade_user(click, 0.0), 2);
  expect_same(*make_user("ours", clicks, users, 2), position_user(click, {0.9, 0.1}, 1.0, 0.0), 2);
  // A part whose largest grade is missing still goes by the whole table.
  expect_same(*make_user("yours", clicks, users, 1), cascade_user(click, 0.0), 1);
}

TEST(UsersTest, CustomUsersFollowTheOtherModels) {
  std::vector<UserSettings> users = {custom("satisfied"), custom("browsing"), custom("near"),
                                     custom("fickle")};
  users[0].kind = ClickKind::kDynamicBayesian;
  users[0].satisfaction = {0.1, 0.2, 0.3};
  users[0].perseverance = 0.5;
  users[1].kind = ClickKind::kUserBrowsing;
  users[1].browsing = {0.9, 0.5, 0.7};
  users[2].kind = ClickKind::kUserBrowsing;
  users[2].examination = {0.9, 0.1};
  users[3].kind = ClickKind::kChanging;
  users[3].click.clear();
  users[3].intents = {"near", "perfect"};
  users[3].change_every = 7;
  users[3].repeat = false;
  const std::vector<double> click = {0.1, 0.5, 0.9};
  expect_same(*make_user("satisfied", {}, users, 2),
              ScanningUser({click, {0.1, 0.2, 0.3}, StopDraw::kAfterClick, 0.5}, 0.0), 2);
  expect_same(*make_user("browsing", {}, users, 2), ExaminingUser(click, {{0.9, 0.5, 0.7}, {}, 1.0}, 0.0),
              2);
  expect_same(*make_user("near", {}, users, 2), ExaminingUser(click, {{}, {0.9, 0.1}, 1.0}, 0.0), 2);
  std::vector<std::unique_ptr<ClickModel>> intents;
  intents.push_back(make_user("near", {}, users, 2));
  intents.push_back(make_user("perfect", {}, users, 2));
  expect_same(*make_user("fickle", {}, users, 2), ChangingUser(std::move(intents), 7, false), 2);
  EXPECT_EQ(message_of<InvalidArgument>([&] { check_users({}, users); }), kNoError);
  EXPECT_EQ(describe_user("satisfied", {}, users, 2),
            "satisfied: dbn, P(click | grade) 0.1 0.5 0.9, P(satisfied | grade) 0.1 0.2 0.3, perseverance "
            "0.5, no noise");
  EXPECT_EQ(
      describe_user("browsing", {}, users, 2),
      "browsing: ubm, P(click | grade) 0.1 0.5 0.9, P(examined) by rank and last click 0.9 0.5 0.7, no "
      "noise");
  EXPECT_EQ(
      describe_user("fickle", {}, users, 2),
      "fickle: changes every 7 rounds: near: ubm, P(click | grade) 0.1 0.5 0.9, P(examined) by "
      "distance 0.9 0.1, no noise; then perfect: dependent, P(click | grade) 0 0.5 1, P(stop | grade) 0 "
      "0 0 after-click, no noise");
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

TEST(UsersTest, AreDescribedInOneLine) {
  ClickSettings clicks;
  EXPECT_EQ(describe_user("navigational", clicks, {}, 2),
            "navigational: dependent, P(click | grade) 0.05 0.5 0.95, P(stop | grade) 0.2 0.5 0.9 "
            "after-click, no noise");
  std::vector<UserSettings> users = {custom("a"), custom("b"), custom("c"), custom("d")};
  users[0].noise = 0.25;
  users[1].kind = ClickKind::kCascade;
  users[2].kind = ClickKind::kPosition;
  users[3].kind = ClickKind::kPosition;
  users[3].examination = {1.0, 0.5};
  EXPECT_EQ(describe_user("a", clicks, users, 2),
            "a: dependent, P(click | grade) 0.1 0.5 0.9, never stops, noise 0.25");
  EXPECT_EQ(describe_user("b", clicks, users, 2),
            "b: cascade, P(click | grade) 0.1 0.5 0.9, stops after the first click, no noise");
  EXPECT_EQ(describe_user("c", clicks, users, 2),
            "c: position, P(click | grade) 0.1 0.5 0.9, P(examined) 1/rank^1, no noise");
  EXPECT_EQ(describe_user("d", clicks, users, 2),
            "d: position, P(click | grade) 0.1 0.5 0.9, P(examined) by rank 1 0.5, no noise");
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
