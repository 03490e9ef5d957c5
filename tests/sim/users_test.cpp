#include "sim/users.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/error.h"
#include "sim/cascade_click_model.h"
#include "sim/click_tables.h"
#include "sim/dependent_click_model.h"
#include "sim/position_click_model.h"
#include "tests/sim/play_users.h"

namespace olrank {
namespace {

UserSettings custom(const std::string& name, const ClickSettings& clicks = {}) {
  UserSettings user = UserSettings::defaults(clicks);
  user.name = name;
  user.click = {0.1, 0.5, 0.9};
  return user;
}

std::string complaint(const std::function<void()>& action) {
  try {
    action();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no complaint";
}

std::string complaint_about(const std::function<void(UserSettings&)>& spoil) {
  std::vector<UserSettings> users = {custom("mine")};
  spoil(users[0]);
  std::string checked = complaint([&] { check_users({}, users); });
  EXPECT_EQ(complaint([&] { make_user("mine", {}, users, 2); }), checked);
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
  expect_same(*make_user("informational", clicks, {}, 4),
              DependentClickModel(table, StopDraw::kAfterClick, 0.0), 4);
  clicks.stop = StopDraw::kEveryDoc;
  clicks.noise = 0.2;
  expect_same(*make_user("informational", clicks, {}, 4),
              DependentClickModel(table, StopDraw::kEveryDoc, 0.2), 4);
  clicks.kind = ClickKind::kCascade;
  expect_same(*make_user("informational", clicks, {}, 4), CascadeClickModel(table.click, 0.2), 4);
  clicks.kind = ClickKind::kPosition;
  clicks.position_bias = 0.4;
  expect_same(*make_user("informational", clicks, {}, 4), PositionClickModel(table.click, {}, 0.4, 0.2), 4);
}

TEST(UsersTest, GradesChooseTheTableUnlessStated) {
  ClickSettings clicks;
  const auto informational = [](int grades) {
    return DependentClickModel(built_in_table("informational", grades), StopDraw::kAfterClick, 0.0);
  };
  expect_same(*make_user("informational", clicks, {}, 1), informational(2), 1);
  expect_same(*make_user("informational", clicks, {}, 2), informational(3), 2);
  clicks.grades = 5;
  expect_same(*make_user("informational", clicks, {}, 1), informational(5), 1);
  EXPECT_EQ(complaint([&] { make_user("perfect", {}, {}, 5); }).substr(0, 20), "The data has grade 5");
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
              DependentClickModel({click, {0.5, 0.4, 0.3}}, StopDraw::kEveryDoc, 0.1), 2);
  expect_same(*make_user("yours", clicks, users, 2), CascadeClickModel(click, 0.0), 2);
  expect_same(*make_user("ours", clicks, users, 2), PositionClickModel(click, {0.9, 0.1}, 1.0, 0.0), 2);
  // A part whose largest grade is missing still goes by the whole table.
  expect_same(*make_user("yours", clicks, users, 1), CascadeClickModel(click, 0.0), 1);
}

TEST(UsersTest, UsersStartFromWhatClicksSays) {
  ClickSettings clicks;
  clicks.kind = ClickKind::kPosition;
  clicks.stop = StopDraw::kEveryDoc;
  clicks.noise = 0.3;
  clicks.position_bias = 2.0;
  const UserSettings user = UserSettings::defaults(clicks);
  EXPECT_EQ(user.kind, ClickKind::kPosition);
  EXPECT_EQ(user.stop_draw, StopDraw::kEveryDoc);
  EXPECT_EQ(user.noise, 0.3);
  EXPECT_EQ(user.position_bias, 2.0);
}

TEST(UsersTest, ContradictionsAreWholeSentences) {
  EXPECT_EQ(complaint_about([](UserSettings&) {}), "no complaint");
  EXPECT_EQ(complaint_about([](UserSettings& user) { user.click.clear(); }),
            "User 'mine' has no click probabilities; give 'click' one for each grade, from grade 0.");
  EXPECT_EQ(complaint_about([](UserSettings& user) { user.click[1] = 1.5; }),
            "User 'mine': 'click' holds 1.5, which is no probability; each must lie between 0 and 1.");
  EXPECT_EQ(complaint_about([](UserSettings& user) {
              user.stop = {0.1, -0.1, 0.1};
            }),
            "User 'mine': 'stop' holds -0.1, which is no probability; each must lie between 0 and 1.");
  EXPECT_EQ(complaint_about([](UserSettings& user) {
              user.noise = std::numeric_limits<double>::quiet_NaN();
            }).substr(0, 20),
            "User 'mine': 'noise'");
  EXPECT_EQ(
      complaint_about([](UserSettings& user) { user.stop = {0.5}; }),
      "User 'mine' has 3 click and 1 stop probabilities; give one of each for every grade, or no stop "
      "at all.");
  EXPECT_EQ(
      complaint_about([](UserSettings& user) { user.examination = {0.5}; }),
      "User 'mine' is of kind dependent, which has no use for 'examination'; leave it out, or set kind "
      "= \"position\".");
  EXPECT_EQ(complaint_about([](UserSettings& user) {
              user.kind = ClickKind::kCascade;
              user.stop = {0.5, 0.5, 0.5};
            }),
            "User 'mine' is of kind cascade, which has no use for 'stop'; leave it out, or set kind = "
            "\"dependent\".");
  const std::vector<UserSettings> users = {custom("mine")};
  EXPECT_EQ(complaint([&] { make_user("mine", {}, users, 3); }),
            "The data has grade 3, and the table of user 'mine' ends at grade 2; give it 4 click "
            "probabilities.");
}

TEST(UsersTest, NamesAreKnownAndUnique) {
  ClickSettings clicks;
  clicks.models = {"perfect", "navigatoinal"};
  const std::vector<UserSettings> users = {custom("mine"), custom("yours")};
  EXPECT_EQ(complaint([&] { check_users(clicks, users); }),
            "clicks.models: Unknown user 'navigatoinal'. Did you mean 'navigational'? The users are "
            "perfect, navigational, informational, mine and yours; a [[user]] table defines another.");
  clicks.models = {"yours", "informational"};
  EXPECT_EQ(complaint([&] { check_users(clicks, users); }), "no complaint");
  EXPECT_NE(complaint([&] { make_user("theirs", clicks, users, 1); }), "no complaint");
  const std::vector<UserSettings> twins = {custom("mine"), custom("mine")};
  EXPECT_EQ(complaint([&] { check_users(clicks, twins); }),
            "Two users are called 'mine'; give each [[user]] a name of its own.");
  const std::vector<UserSettings> impostor = {custom("perfect")};
  EXPECT_EQ(complaint([&] { check_users(clicks, impostor); }),
            "A [[user]] is called 'perfect' as a built-in one is; give it another name.");
  clicks.grades = 4;
  EXPECT_EQ(complaint([&] { check_users(clicks, users); }).substr(0, 18), "clicks.grades is 4");
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

}  // namespace
}  // namespace olrank
