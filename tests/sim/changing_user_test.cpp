#include "sim/click_models.h"

#include <gtest/gtest.h>

#include "tests/sim/play_users.h"
#include "tests/support/chi_square.h"

namespace olrank {
namespace {

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

}  // namespace
}  // namespace olrank
