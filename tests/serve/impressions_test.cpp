#include "serve/impressions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "serve/api_error.h"
#include "serve/file_log.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/message_of.h"

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
ApiError refusal_of(const Call& call) {
  try {
    call();
  } catch (const ApiError& error) {
    return error;
  }
  return {200, "", ""};
}
template <class Call>
int status_of(const Call& call) {
  return refusal_of(call).status();
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
  EXPECT_EQ(impressions.counts().open, 0U);
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
  const std::string message = message_of<ApiError>([&] {
    impressions.claim(id, std::vector<Click>{{1, ""}, {0, ""}, {0, ""}}, Time{});
  });
  EXPECT_NE(message.find("not a 0 or 1 for each document"), std::string::npos) << message;
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

TEST_F(ImpressionsTest, TellsBeingWrittenFromOtherClicks) {
  const std::string id = open();
  auto claim = impressions.claim(id, std::vector<Click>{{0, ""}}, Time{});
  const ApiError writing = refusal_of([&] { impressions.claim(id, std::vector<Click>{{0, ""}}, Time{}); });
  EXPECT_EQ(writing.status(), 409);
  EXPECT_EQ(writing.code(), "being_written");
  EXPECT_GT(writing.retry_after(), 0);
  EXPECT_NE(writing.json().find("\"code\":\"being_written\""), std::string::npos);
  impressions.commit(claim.record, Time{});
  EXPECT_TRUE(impressions.claim(id, std::vector<Click>{{0, ""}}, Time{}).duplicate);
  const ApiError other = refusal_of([&] { impressions.claim(id, std::vector<Click>{{1, ""}}, Time{}); });
  EXPECT_EQ(other.status(), 409);
  EXPECT_EQ(other.code(), "other_clicks_accepted");
  EXPECT_EQ(other.retry_after(), 0);
}

TEST_F(ImpressionsTest, AnswersTheLastOneAtTheLimit) {
  Impressions one({1, std::chrono::seconds(10)}, "start");
  const std::string id = one.open(list_of({"a"}), 1, Time{});
  EXPECT_EQ(status_of([&] { one.claim(id, std::vector<Click>{}, Time{}); }), 200);
}

FeedbackRecord large_list(std::size_t docs, std::int64_t columns) {
  FeedbackRecord list;
  list.query = "a query that is not stored inline";
  list.columns = columns;
  list.docs.reserve(docs);
  for (std::size_t doc = 0; doc < docs; ++doc)
    list.docs.push_back({fmt::format("document number {:08}", doc), false});
  list.inputs.resize(docs * columns);
  return list;
}

// The limit means bytes of the process: what is counted is what the heap gave.
TEST(ImpressionMemory, IsWhatTheHeapGave) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's heap takes more";
#endif
  struct Shape {
    std::size_t docs;
    std::int64_t columns;
  };
  for (const Shape shape : {Shape{1, 1}, Shape{10, 136}, Shape{100, 46}, Shape{1000, 136}}) {
    SCOPED_TRACE(shape.docs);
    Impressions impressions({100'000, std::chrono::seconds(10), 1'000'000'000}, "0123456789abcdef");
    const auto shown = static_cast<std::int64_t>(shape.docs);
    const std::int64_t before = allocated_bytes();
    std::vector<std::string> ids;
    ids.reserve(50);
    const std::int64_t of_ids = allocated_bytes() - before;
    for (int i = 0; i < 50; ++i)
      ids.push_back(impressions.open(large_list(shape.docs, shape.columns), shown, Time{}));
    const auto bytes = [&] { return static_cast<double>(impressions.counts().bytes); };
    const auto allocated = [&] {
      return static_cast<double>(allocated_bytes() - before - of_ids) -
             static_cast<double>(50 * heap_bytes(ids.front()));
    };
    // Clicks are counted from the start, but allocated with the answer.
    const double clicks = 50.0 * static_cast<double>(heap_bytes(shape.docs));
    EXPECT_NEAR(bytes() - clicks, allocated(), 0.03 * allocated());
    for (std::size_t i = 0; i < 25; ++i)
      impressions.commit(impressions.claim(ids[i], std::vector<Click>{{0, ""}}, Time{}).record, Time{});
    EXPECT_NEAR(bytes() - clicks / 2, allocated(), 0.03 * allocated());
    // Nothing is left once all have expired but the answers, and these are counted too.
    EXPECT_EQ(status_of([&] { impressions.claim("x", {}, Time{} + std::chrono::seconds(11)); }), 404);
    EXPECT_EQ(impressions.counts().open, 0U);
    EXPECT_NEAR(bytes(), allocated(), 0.03 * allocated());
  }
}

TEST(ImpressionMemory, ForgetsTheOldestFirst) {
  constexpr std::size_t kLimit = 2'000'000;
  Impressions impressions({100'000, std::chrono::seconds(1000), kLimit}, "start");
  std::vector<std::string> ids;
  for (int i = 0; i < 200; ++i) {
    ids.push_back(impressions.open(large_list(20, 300), 20, Time{} + std::chrono::seconds(i)));
    if (i % 3 == 0) {
      impressions.commit(impressions.claim(ids.back(), {}, Time{} + std::chrono::seconds(i)).record,
                         Time{} + std::chrono::seconds(i));
    }
    ASSERT_LE(impressions.counts().bytes, kLimit);
  }
  EXPECT_GT(impressions.counts().bytes, kLimit * 9 / 10);
  EXPECT_GT(impressions.counts().dropped, 50U);
  // Everything before some point in time is gone, everything after it is there, answered or not.
  bool gone = true;
  std::size_t first = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const int status =
        status_of([&] { impressions.claim(ids[i], {}, Time{} + std::chrono::seconds(200)); });
    if (status == 200 && gone) {
      gone = false;
      first = i;
    }
    ASSERT_EQ(status, gone ? 410 : 200) << i;
  }
  EXPECT_GT(first, 50U);
  EXPECT_LT(first, 190U);
}

TEST(ImpressionMemory, BoundsRememberedAnswers) {
  Impressions impressions({100'000, std::chrono::seconds(10), 500'000}, "start");
  for (int i = 0; i < 1000; ++i) {
    FeedbackRecord answered = large_list(100, 1);
    answered.impression = fmt::format("earlier-{}", i);
    answered.clicks.assign(100, 0);
    impressions.remember(answered);
    ASSERT_LE(impressions.counts().bytes, 500'000U);
  }
  EXPECT_TRUE(impressions.claim("earlier-999", {}).duplicate);
  EXPECT_EQ(status_of([&] { impressions.claim("earlier-0", {}); }), 404);
}

TEST(ImpressionMemory, RejectsAListThatCannotFit) {
  Impressions impressions({100, std::chrono::seconds(10), 100'000}, "start");
  const std::string small = impressions.open(large_list(2, 10), 2, Time{});
  EXPECT_EQ(status_of([&] { impressions.open(large_list(1000, 100), 1000, Time{}); }), 413);
  EXPECT_EQ(status_of([&] { impressions.claim(small, {}, Time{}); }), 200);
  // What is being written cannot be forgotten.
  Impressions tight({100, std::chrono::seconds(10), 3'000}, "start");
  const std::string written = tight.open(large_list(10, 10), 10, Time{});
  auto claim = tight.claim(written, {}, Time{});
  const ApiError busy = refusal_of([&] { tight.open(large_list(10, 10), 10, Time{}); });
  EXPECT_EQ(busy.status(), 503);
  EXPECT_GT(busy.retry_after(), 0);
  tight.release(std::move(claim.record));
  EXPECT_EQ(status_of([&] { tight.open(large_list(10, 10), 10, Time{}); }), 200);
}

TEST_F(ImpressionsTest, ExpiresByAgeAndByCount) {
  const std::string oldest = open();
  const std::string second = open();
  open();
  open();  // the fourth; the limit is three
  EXPECT_EQ(impressions.counts().open, 3U);
  EXPECT_EQ(status_of([&] { impressions.claim(oldest, std::vector<Click>{}, Time{}); }), 410);
  EXPECT_EQ(status_of([&] {
              impressions.claim(second, std::vector<Click>{}, Time{} + std::chrono::seconds(11));
            }),
            410);
  EXPECT_EQ(impressions.counts().open, 0U);
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
