#include "serve/impressions.h"

#include <gtest/gtest.h>

#include "serve/api_error.h"

namespace olrank {
namespace {

using Click = Impressions::Click;
using Time = Impressions::Clock::time_point;

FeedbackRecord list_of(std::vector<std::string> docs) {
  FeedbackRecord list;
  list.query = "q";
  for (auto& doc : docs) list.docs.push_back({doc, false});
  return list;
}

template <class Call>
int status_of(const Call& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return error.status();
  }
  return 200;
}

class ImpressionsTest : public testing::Test {
 protected:
  std::string open(Time now = Time{}) {
    return impressions.open(list_of({"a", "b", "c", "unseen"}), 3, now);
  }
  void accept(const std::string& id, std::vector<Click> clicks, std::uint64_t round) {
    auto claim = impressions.claim(id, clicks, Time{});
    ASSERT_FALSE(claim.duplicate);
    claim.record.round = round;
    impressions.commit(claim.record);
  }

  Impressions impressions{{3, std::chrono::seconds(10)}, "start"};
};

TEST_F(ImpressionsTest, AcceptsClicksByRankAndById) {
  const std::string id = open();
  auto claim = impressions.claim(id, std::vector<Click>{{2, ""}, {-1, "a"}}, Time{});
  EXPECT_FALSE(claim.duplicate);
  EXPECT_EQ(claim.record.impression, id);
  EXPECT_EQ(claim.record.clicks, (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_EQ(claim.record.docs.size(), 4U);
}

TEST_F(ImpressionsTest, CountsFeedbackOnce) {
  const std::string id = open();
  accept(id, {{1, ""}}, 7);
  EXPECT_EQ(impressions.open_count(), 0U);
  // The same clicks, by ID instead of by rank.
  const auto again = impressions.claim(id, std::vector<Click>{{-1, "b"}}, Time{});
  EXPECT_TRUE(again.duplicate);
  EXPECT_EQ(again.round, 7U);
  EXPECT_EQ(status_of([&] { impressions.claim(id, std::vector<Click>{}, Time{}); }), 409);
}

TEST_F(ImpressionsTest, RemembersAnswersOfEarlierRuns) {
  FeedbackRecord before = list_of({"a", "b"});
  before.impression = "earlier-3";
  before.clicks = {0, 1};
  before.round = 41;
  impressions.remember(before);
  const auto again = impressions.claim("earlier-3", std::vector<Click>{{1, ""}}, Time{});
  EXPECT_TRUE(again.duplicate);
  EXPECT_EQ(again.round, 41U);
}

TEST_F(ImpressionsTest, RejectsInvalidClicks) {
  const std::string id = open();
  for (const auto& clicks :
       std::vector<std::vector<Click>>{{{3, ""}}, {{-1, "unseen"}}, {{0, ""}, {-1, "a"}}})
    EXPECT_EQ(status_of([&] { impressions.claim(id, clicks, Time{}); }), 422);
  EXPECT_EQ(status_of([&] { impressions.claim(id, std::vector<Click>{{0, ""}}, Time{}); }), 200);
}

TEST_F(ImpressionsTest, AwaitsFeedbackAgainAfterRelease) {
  const std::string id = open();
  const std::vector<Click> clicks = {{0, ""}};
  auto claim = impressions.claim(id, clicks, Time{});
  EXPECT_EQ(status_of([&] { impressions.claim(id, clicks, Time{}); }), 409);
  impressions.release(std::move(claim.record));
  EXPECT_EQ(impressions.claim(id, clicks, Time{}).record.clicks, (std::vector<std::uint8_t>{1, 0, 0}));
}

TEST_F(ImpressionsTest, ExpiresByAgeAndByCount) {
  const std::string oldest = open();
  const std::string second = open();
  open();
  open();  // the fourth; the limit is three
  EXPECT_EQ(impressions.open_count(), 3U);
  EXPECT_EQ(status_of([&] { impressions.claim(oldest, std::vector<Click>{}, Time{}); }), 410);
  EXPECT_EQ(status_of([&] {
              impressions.claim(second, std::vector<Click>{}, Time{} + std::chrono::seconds(11));
            }),
            410);
  EXPECT_EQ(impressions.open_count(), 0U);
  for (const char* unknown : {"", "start-", "start-9", "start-1x", "other-1", "start--1", "start-0"})
    EXPECT_EQ(status_of([&] { impressions.claim(unknown, std::vector<Click>{}, Time{}); }), 404) << unknown;
}

TEST_F(ImpressionsTest, RemembersAsManyAnswersAsTheOpenLimit) {
  std::vector<std::string> ids;
  for (std::uint64_t round = 1; round <= 4; ++round) {
    ids.push_back(open());
    accept(ids.back(), {}, round);
  }
  EXPECT_EQ(status_of([&] { impressions.claim(ids[0], std::vector<Click>{}, Time{}); }), 410);
  EXPECT_TRUE(impressions.claim(ids[1], std::vector<Click>{}, Time{}).duplicate);
}

}  // namespace
}  // namespace olrank
