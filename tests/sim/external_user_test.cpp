#include "sim/external_user.h"
#include "sim/click_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "core/error.h"
#include "core/online/online_ranker.h"
#include "core/random/rng_stream.h"
#include "sim/trial_figures.h"
#include "tests/sim/play_users.h"
#include "tests/sim/small_trial.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

using Click = std::function<std::vector<std::uint8_t>(const ShownToUser& list)>;

class Clicker : public ExternalUser {
 public:
  explicit Clicker(Click click) : click_(std::move(click)) {}
  std::vector<std::uint8_t> click(const ShownToUser& list) const override { return click_(list); }

 private:
  Click click_;
};

/// A user that is known while this exists.
class Registered {
 public:
  Registered(const std::string& name, Click click, const std::string& description = "of a test")
      : name_(name) {
    register_user(name, description, std::make_shared<Clicker>(std::move(click)));
  }
  ~Registered() { unregister_user(name_); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  std::string name_;
};

/// Scans from the top, clicks by grade, and may stop after a click: the navigational user of five grades.
std::vector<std::uint8_t> navigate(const ShownToUser& list) {
  static const ClickTable table = built_in_table("navigational", 5);
  std::vector<std::uint8_t> clicks(list.shown.size(), 0);
  for (std::size_t rank = 0; rank < clicks.size(); ++rank) {
    const std::int32_t doc = list.shown[rank];
    if (list.coins.uniform(doc, UserDecision::kClick) >= table.click[list.grades[doc]]) continue;
    clicks[rank] = 1;
    if (list.coins.uniform(doc, UserDecision::kStop) < table.stop[list.grades[doc]]) break;
  }
  return clicks;
}

std::vector<std::uint8_t> click_all(const ShownToUser& list) {
  return std::vector<std::uint8_t>(list.shown.size(), 1);
}

TEST(UserCoinsTest, AreThoseOfBuiltInUsers) {
  const PhiloxKey key = user_key();
  const UserCoins coins({key.word[0], key.word[1]}, 7);
  for (const std::int32_t doc : {0, 3, 4711}) {
    for (std::uint32_t decision = 0; decision < 5; ++decision) {
      EXPECT_EQ(coins.uniform(doc, UserDecision{decision}),
                RngStream(key, 7, static_cast<std::uint32_t>(doc), decision).uniform());
    }
    EXPECT_NE(coins.own(doc, 0), coins.own(doc, 1));
    EXPECT_NE(coins.own(doc, 0), coins.uniform(doc, UserDecision::kClick));
  }
}

/// All that a trial of "mine" leaves: its curve and its state.
std::string played(const std::vector<UserSettings>& users, std::uint64_t seed) {
  const TrialData data = small_trial_data("synth:small?queries=12&test_queries=5");
  StubRanker ranker(data.train.features());
  TrialStage stage({.rounds = 60, .cutoff = 10, .eval_every = 8}, data, ranker, seed, "mine", 1, {}, users);
  std::vector<std::string> lines;
  stage.play_to(60, true, lines);
  std::string left = stage.state();
  for (const std::string& line : lines) left += line;
  return left;
}

TEST(ExternalUserTest, ABuiltInUserWrittenAgainPlaysTheSameTrial) {
  const TrialData data = small_trial_data("synth:small?queries=12&test_queries=5");
  ASSERT_EQ(data.max_grade, 4);
  const ClickTable table = built_in_table("navigational", 5);
  UserSettings mine;
  mine.name = "mine";
  mine.click = table.click;
  mine.stop = table.stop;
  for (const std::uint64_t seed : {1, 2}) {
    const std::string built_in = played({mine}, seed);
    const Registered user("mine", navigate);
    EXPECT_EQ(played({}, seed), built_in);
  }
  const Registered user("mine", click_all);
  EXPECT_NE(played({}, 1), played({mine}, 1));
}

TEST(ExternalUserTest, SeveralThreadsPlayTheSameTrials) {
  std::atomic<int> calls = 0;
  const Registered user("mine", [&](const ShownToUser& list) {
    ++calls;
    return navigate(list);
  });
  const std::string expected = played({}, 1);
  std::array<std::string, 3> found;
  std::vector<std::thread> threads;
  for (std::string& one : found) threads.emplace_back([&one] { one = played({}, 1); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : found) EXPECT_EQ(one, expected);
  EXPECT_EQ(calls, 4 * 60);
}

TEST(ExternalUserTest, SeesTheRoundTheListAndTheQueryWithItsDocuments) {
  const std::vector<float> values = {1, 2, 3, 4};
  const std::vector<std::string> qids = {"", "", "jackets"};
  const std::string text = "xab";
  const std::vector<std::uint64_t> ends = {1, 2, 3};
  const PartNames names{qids, {text, ends}};
  const QueryDocs docs{.query = 2, .first_doc = 1, .features = {values.data(), 2, 2}, .names = &names};
  const std::vector<std::uint8_t> grades = {31, 0};
  const std::vector<std::int32_t> shown = {1, 0};
  int calls = 0;
  const Registered user("mine", [&](const ShownToUser& list) -> std::vector<std::uint8_t> {
    ++calls;
    EXPECT_EQ(list.round, 5U);
    EXPECT_TRUE(std::ranges::equal(list.grades, grades));
    EXPECT_TRUE(std::ranges::equal(list.shown, shown));
    EXPECT_EQ(list.query, 2);
    EXPECT_EQ(list.qid, "jackets");
    EXPECT_EQ(list.ids, (std::vector<std::string_view>{"a", "b"}));
    EXPECT_EQ(list.features, 2);
    EXPECT_EQ(std::vector(list.inputs.begin(), list.inputs.end()), values);
    return {0, 1};
  });
  ClickLog log;
  make_user("mine", {}, {}, 31)->click({grades, &docs}, shown, user_key(), 5, log);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(log.clicks, (std::vector<std::uint8_t>{0, 1}));
  EXPECT_EQ(log.examined, (std::vector<std::uint8_t>{1, 1}));
}

TEST(ExternalUserTest, ItsExaminationGivesTheExposureOfRanks) {
  const Registered user("mine", [](const ShownToUser& list) -> std::vector<std::uint8_t> {
    EXPECT_EQ(list.inputs.size(), list.grades.size() * static_cast<std::size_t>(list.features));
    for (std::size_t rank = 2; rank < list.examined.size(); ++rank) list.examined[rank] = list.round % 2;
    return std::vector<std::uint8_t>(list.shown.size(), 0);
  });
  const TrialData data = small_trial_data("synth:small?queries=12&test_queries=5");
  const Examination examination =
      examination_of(*make_user("mine", {}, {}, data.max_grade), data.train, 4, 100, 1, "mine");
  EXPECT_EQ(examination.by_rank[0], 1.0);
  EXPECT_EQ(examination.by_rank[1], 1.0);
  // A hundred lists, of which every second one is examined; a few are shorter than these ranks.
  EXPECT_NEAR(examination.by_rank[2], 0.5, 0.05);
  EXPECT_NEAR(examination.by_rank[3], 0.5, 0.05);
}

TEST(ExternalUserTest, TakesPartLikeABuiltInUser) {
  const Registered user("mine", click_all, "clicks on everything, 2.0");
  ClickSettings clicks;
  clicks.models = {"perfect", "mine"};
  UserSettings changing;
  changing.name = "fickle";
  changing.kind = ClickKind::kChanging;
  changing.intents = {"mine", "perfect"};
  changing.change_every = 3;
  const std::vector<UserSettings> users = {changing};
  EXPECT_EQ(message_of<InvalidArgument>([&] { check_users(clicks, users); }), kNoError);
  EXPECT_EQ(describe_user("mine", clicks, users, 2), "mine: registered, clicks on everything, 2.0");
  EXPECT_TRUE(contains(describe_user("fickle", clicks, users, 2), "clicks on everything, 2.0"));
  ClickLog log;
  make_user("fickle", clicks, users, 2)->click({{{0, 0}}}, in_order(2), user_key(), 3, log);
  EXPECT_EQ(log.clicks, (std::vector<std::uint8_t>{1, 1}));
  make_user("fickle", clicks, users, 2)->click({{{0, 0}}}, in_order(2), user_key(), 4, log);
  EXPECT_EQ(log.clicks, (std::vector<std::uint8_t>{0, 0}));
}

TEST(ExternalUserTest, SaysWhatItHasClickedAndExamined) {
  using Bytes = std::vector<std::uint8_t>;
  const auto refused = [](const Bytes& clicks, const Bytes& examined) {
    const Registered user("mine", [&](const ShownToUser& list) {
      std::ranges::copy(examined, list.examined.begin());
      return clicks;
    });
    const Bytes grades = {2, 0, 1};
    ClickLog log;
    const std::string message = message_of<InvalidArgument>(
        [&] { make_user("mine", {}, {}, 2)->click({grades}, in_order(3), user_key(), 9, log); });
    EXPECT_EQ(log.examined, examined);
    return message;
  };
  EXPECT_EQ(refused({1, 0, 0}, {1, 0, 1}), kNoError);
  EXPECT_EQ(refused({0, 1, 0}, {1, 1, 1}), kNoError);
  EXPECT_EQ(refused({1, 0, 0}, {0, 1, 1}),
            "User 'mine' examined rank 1 by 0 in round 9: it is 0 or 1, and 1 where there is a click.");
  EXPECT_EQ(refused({1, 0, 0}, {1, 1, 3}),
            "User 'mine' examined rank 3 by 3 in round 9: it is 0 or 1, and 1 where there is a click.");
  EXPECT_EQ(refused({0, 1}, {1, 1, 1}),
            "User 'mine' returned 2 clicks in round 9, but was shown 3 documents: return 0 or 1 for each.");
  EXPECT_EQ(refused({0, 2, 1}, {1, 1, 1}),
            "User 'mine' returned 2 for document 1 in round 9: return 1 for a click and 0 for no click.");
}

TEST(ExternalUserTest, RefusesNames) {
  const auto refused = [](const std::string& name, const std::string& description = "of a test") {
    return message_of<InvalidArgument>(
        [&] { register_user(name, description, std::make_shared<Clicker>(click_all)); });
  };
  const Registered user("mine", click_all);
  EXPECT_EQ(refused("mine"),
            "There is a registered user 'mine' already: choose another name, or unregister it.");
  EXPECT_EQ(refused("perfect"), "The user 'perfect' is built in: choose another name.");
  EXPECT_EQ(
      refused("../x"),
      "A user cannot be named '../x': its trials have a folder of that name, so use letters, digits and "
      "- _ . + =, without a leading dot.");
  EXPECT_EQ(
      refused("yours", ""),
      "The description of user 'yours' must be one line: name the user, its version and its parameters.");
  EXPECT_NE(refused("yours", "two\nlines"), kNoError);
  EXPECT_EQ(message_of<InvalidArgument>([] { register_user("yours", "of a test", nullptr); }),
            "The user 'yours' is a null pointer: register an object.");

  UserSettings table;
  table.name = "mine";
  table.click = {0.0, 0.5, 1.0};
  const std::vector<UserSettings> users = {table};
  EXPECT_EQ(message_of<InvalidArgument>([&] { check_users({}, users); }),
            "A [[user]] must not have the name of the registered user 'mine'. Choose another name.");
}

TEST(ExternalUserTest, IsUnknownOnceUnregistered) {
  ClickSettings clicks;
  clicks.models = {"mine"};
  std::unique_ptr<ClickModel> made;
  {
    const Registered user("mine", click_all);
    check_users(clicks, {});
    made = make_user("mine", clicks, {}, 2);
  }
  unregister_user("mine");
  EXPECT_EQ(message_of<InvalidArgument>([&] { check_users(clicks, {}); }).substr(0, 36),
            "clicks.models: Unknown user 'mine'. ");
  ClickLog log;
  made->click({{{0, 0}}}, in_order(2), user_key(), 1, log);
  EXPECT_EQ(log.clicks, (std::vector<std::uint8_t>{1, 1}));
}

}  // namespace
}  // namespace olrank
