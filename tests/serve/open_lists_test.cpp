#include "serve/open_lists.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/support/api_refusal.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

using Click = FirstAnswers::Click;

FeedbackRecord list_of(std::vector<std::string> docs, std::int64_t time = 0) {
  FeedbackRecord list;
  list.query = "q";
  list.time = time;
  for (auto& doc : docs) list.docs.push_back({doc, false});
  return list;
}

/// Open lists with a log; time is told, not measured, and in milliseconds.
struct Answered {
  explicit Answered(const ImpressionLimits& limits = {3, std::chrono::seconds(10)},
                    std::string first = "start")
      : limits(limits), prefix(std::move(first)) {
    start();
  }

  void start(bool keeps_lists = false) {
    lists.reset();
    log.reset();
    log.emplace(folder / "log", 1000);
    FirstAnswers::Settings settings{limits, prefix};
    if (keeps_lists)
      settings.file = {folder.path(), std::chrono::milliseconds(limits.age).count(), limits.bytes};
    lists.emplace(std::move(settings), *log);
  }
  std::string open(std::int64_t time = 0) {
    return lists->open(list_of({"a", "b", "c", "unseen"}, time), 3, time);
  }
  auto add(const std::string& id, std::vector<Click> clicks, std::int64_t now = 0) {
    return lists->add(id, clicks, now);
  }
  FeedbackRecord logged() const {
    FeedbackRecord record;
    EXPECT_FALSE(parse_record(log->line_before(log->bytes()), record));
    return record;
  }

  TemporaryFolder folder;
  ImpressionLimits limits;
  std::string prefix;
  std::optional<FileLog> log;
  std::optional<FirstAnswers> lists;
};

TEST(FirstAnswersTest, CountsClicksByRankAndByIdOnceAlsoAfterARestart) {
  Answered answered({1, std::chrono::seconds(10)});
  answered.add(answered.open(), {});
  const std::string id = answered.open();
  const auto outcome = answered.add(id, {{2, ""}, {-1, "a"}});
  EXPECT_FALSE(outcome.duplicate);
  EXPECT_EQ(outcome.round, 2U);
  EXPECT_EQ(outcome.clicks, (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_EQ(answered.logged().impression, id);
  EXPECT_EQ(answered.logged().clicks, outcome.clicks);
  EXPECT_EQ(answered.lists->counts().open, 0U);
  for (int start = 0; start < 2; ++start) {
    const auto again = answered.add(id, {{-1, "c"}, {0, ""}});
    EXPECT_TRUE(again.duplicate);
    EXPECT_EQ(again.round, 2U);
    EXPECT_EQ(status_of([&] { answered.add(id, {}); }), 409);
    EXPECT_EQ(answered.log->rounds(), 2U);
    answered.start();
  }
}

TEST(FirstAnswersTest, AsksWhetherAnIntegerIsARankOrAnId) {
  const std::vector<DocId> shown = {{"0", true}, {"7", true}, {"1", true}, {"3", false}};
  const auto clicked = [&](const std::vector<Click>& clicks) -> std::string {
    try {
      const std::vector<std::uint8_t> seen = clicks_on(shown, clicks);
      return {seen.begin(), std::find(seen.begin(), seen.end(), 1)};
    } catch (const ApiError& error) {
      return error.field() + ": " + error.what();
    }
  };
  const auto at = [](std::size_t rank) { return std::string(rank, '\0'); };
  const std::string advice = ": send the clicks as 'ids' or as 'ranks'.";
  EXPECT_EQ(clicked({{1, ""}}), "clicks[0]: 1 may be rank 1 or the ID of the document at rank 2" + advice);
  EXPECT_EQ(clicked({{0, ""}, {7, ""}}),
            "clicks[1]: 7 may be rank 7 or the ID of the document at rank 1" + advice);
  EXPECT_EQ(clicked({{0, ""}}), at(0)) << "both readings are one document";
  EXPECT_EQ(clicked({{2, ""}}), at(2));
  EXPECT_EQ(clicked({{3, ""}}), at(3)) << "IDs that are texts are sent as texts";
  EXPECT_EQ(clicked({{1, "", "ranks"}}), at(1));
  EXPECT_EQ(clicked({{-1, "1", "ids"}}), at(2));
  EXPECT_EQ(clicked({{4, "", "ranks"}}), "ranks[0]: Rank 4 was not shown; ranks go from 0 to 3.");
  EXPECT_EQ(clicked({{-1, "9", "ids"}}), "ids[0]: Document '9' was not shown in this impression.");
}

TEST(FirstAnswersTest, RejectsInvalidClicks) {
  Answered answered;
  const std::string id = answered.open();
  for (const auto& clicks :
       std::vector<std::vector<Click>>{{{3, ""}}, {{-1, "unseen"}}, {{0, ""}, {-1, "a"}}})
    EXPECT_EQ(status_of([&] { answered.add(id, clicks); }), 422);
  const std::string message = message_of<ApiError>([&] { answered.add(id, {{1, ""}, {0, ""}, {0, ""}}); });
  EXPECT_TRUE(contains(message, "not a 0 or 1 for each document"));
  EXPECT_EQ(status_of([&] { answered.add(id, {{0, ""}}); }), 200);
}

TEST(FirstAnswersTest, AwaitsFeedbackAgainAfterAFailedWrite) {
  const ExpectedWarnings warnings;
  Answered answered;
  const std::string id = answered.open();
  answered.log->guard_writes([] { throw IoError("The lock is gone."); });
  EXPECT_THROW(answered.add(id, {{1, ""}}), IoError);
  answered.log->guard_writes({});
  EXPECT_EQ(answered.add(id, {{0, ""}}).clicks, (std::vector<std::uint8_t>{1, 0, 0}));
  EXPECT_EQ(answered.logged().clicks, (std::vector<std::uint8_t>{1, 0, 0}));
  EXPECT_EQ(warnings.count("Feedback is accepted again; 1 was rejected."), 1);
}

TEST(FirstAnswersTest, TellsBeingWrittenFromOtherClicks) {
  Answered answered;
  const std::string id = answered.open();
  std::optional<ApiError> writing;
  answered.log->guard_writes([&] { writing = refusal_of([&] { answered.add(id, {{0, ""}}); }); });
  EXPECT_FALSE(answered.add(id, {{0, ""}}).duplicate);
  ASSERT_TRUE(writing);
  EXPECT_EQ(writing->status(), 409);
  EXPECT_EQ(writing->code(), "being_written");
  EXPECT_GT(writing->retry_after(), 0);
  EXPECT_TRUE(contains(writing->json(), "\"code\":\"being_written\""));
  EXPECT_TRUE(answered.add(id, {{0, ""}}).duplicate);
  const ApiError other = refusal_of([&] { answered.add(id, {{1, ""}}); });
  EXPECT_EQ(other.status(), 409);
  EXPECT_EQ(other.code(), "other_clicks_accepted");
  EXPECT_EQ(other.retry_after(), 0);
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
TEST(FirstAnswersMemory, IsWhatTheHeapGave) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's heap takes more";
#endif
  struct Shape {
    std::size_t docs;
    std::int64_t columns;
  };
  for (const Shape shape : {Shape{1, 1}, Shape{10, 136}, Shape{100, 46}, Shape{1000, 136}}) {
    SCOPED_TRACE(shape.docs);
    Answered answered({100'000, std::chrono::seconds(10), 1'000'000'000}, "0123456789abcdef");
    const auto shown = static_cast<std::int64_t>(shape.docs);
    // The log allocates for a line of this size, too.
    answered.add(answered.lists->open(large_list(shape.docs, shape.columns), shown, 0), {});
    const auto counted = [&] { return static_cast<double>(answered.lists->counts().bytes); };
    const double before = static_cast<double>(allocated_bytes()) - counted();
    std::vector<std::string> ids;
    ids.reserve(50);
    for (int i = 0; i < 50; ++i)
      ids.push_back(answered.lists->open(large_list(shape.docs, shape.columns), shown, 0));
    const double of_ids =
        static_cast<double>(heap_bytes(ids)) + 50.0 * static_cast<double>(heap_bytes(ids.front()));
    const auto allocated = [&] { return static_cast<double>(allocated_bytes()) - before - of_ids; };
    // Clicks are counted from the start, but allocated with the answer.
    const double clicks = 50.0 * static_cast<double>(heap_bytes(shape.docs));
    EXPECT_NEAR(counted() - clicks, allocated(), 0.03 * allocated());
    for (std::size_t i = 0; i < 25; ++i) answered.add(ids[i], {{0, ""}});
    EXPECT_NEAR(counted() - clicks / 2, allocated(), 0.03 * allocated());
    // Nothing is left once all have expired but the answers, and these are counted too.
    EXPECT_EQ(status_of([&] { answered.add("x", {}, 10'001); }), 404);
    EXPECT_EQ(answered.lists->counts().open, 0U);
    EXPECT_NEAR(counted(), allocated(), 0.03 * allocated());
    EXPECT_LT(counted() / 26, 450.0 + 35.0 * static_cast<double>(shape.docs));  // of an answer
  }
}

TEST(FirstAnswersMemory, ForgetsTheOldestFirst) {
  constexpr std::size_t kLimit = 2'000'000;
  Answered answered({100'000, std::chrono::seconds(1000), kLimit});
  std::vector<std::string> ids;
  for (int i = 0; i < 200; ++i) {
    ids.push_back(answered.lists->open(large_list(20, 300), 20, i * 1000));
    if (i % 3 == 0) answered.add(ids.back(), {}, i * 1000);
    ASSERT_LE(answered.lists->counts().bytes, kLimit);
  }
  EXPECT_GT(answered.lists->counts().bytes, kLimit * 9 / 10);
  EXPECT_GT(answered.lists->counts().dropped, 50U);
  // Everything before some point in time is gone, everything after it is there, answered or not.
  bool gone = true;
  std::size_t first = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const int status = status_of([&] { answered.add(ids[i], {}, 200'000); });
    if (status == 200 && gone) {
      gone = false;
      first = i;
    }
    ASSERT_EQ(status, gone ? 410 : 200) << i;
  }
  EXPECT_GT(first, 50U);
  EXPECT_LT(first, 190U);
}

TEST(FirstAnswersMemory, BoundsRememberedAnswers) {
  Answered answered({100'000, std::chrono::seconds(10), 500'000});
  std::vector<std::string> bodies;
  for (int i = 0; i < 1000; ++i) {
    FeedbackRecord record = large_list(100, 1);
    record.impression = fmt::format("earlier-{}", i);
    record.clicks.assign(100, 0);
    bodies.push_back(record_body(record));
  }
  answered.log->append_all(std::move(bodies));
  answered.start();
  EXPECT_LE(answered.lists->counts().bytes, 500'000U);
  EXPECT_GT(answered.lists->counts().bytes, 400'000U);
  EXPECT_TRUE(answered.add("earlier-999", {}).duplicate);
  EXPECT_EQ(status_of([&] { answered.add("earlier-0", {}); }), 404);
}

TEST(FirstAnswersMemory, RejectsAListThatCannotFit) {
  Answered answered({100, std::chrono::seconds(10), 100'000});
  const std::string small = answered.lists->open(large_list(2, 10), 2, 0);
  EXPECT_EQ(status_of([&] { answered.lists->open(large_list(1000, 100), 1000, 0); }), 413);
  EXPECT_EQ(status_of([&] { answered.add(small, {}); }), 200);
  // A list that is being written cannot be forgotten.
  Answered tight({100, std::chrono::seconds(10), 3'000});
  const auto open = [&] { return tight.lists->open(large_list(10, 10), 10, 0); };
  const std::string written = open();
  std::optional<ApiError> busy;
  tight.log->guard_writes([&] { busy = refusal_of(open); });
  tight.add(written, {});
  ASSERT_TRUE(busy);
  EXPECT_EQ(busy->status(), 503);
  EXPECT_GT(busy->retry_after(), 0);
  EXPECT_EQ(status_of(open), 200);
}

TEST(FirstAnswersTest, ExpiresByAgeAndByCount) {
  Answered answered;
  const std::string oldest = answered.open();
  const std::string second = answered.open();
  answered.open();
  answered.open();  // the fourth; the limit is three
  EXPECT_EQ(answered.lists->counts().open, 3U);
  EXPECT_EQ(status_of([&] { answered.add(oldest, {}); }), 410);
  EXPECT_EQ(status_of([&] { answered.add(second, {}, 10'001); }), 410);
  EXPECT_EQ(answered.lists->counts().open, 0U);
  for (const char* unknown : {"", "start-", "start-9", "start-1x", "other-1", "start--1", "start-0"})
    EXPECT_EQ(status_of([&] { answered.add(unknown, {}); }), 404) << unknown;
}

TEST(FirstAnswersTest, RemembersAsManyAnswersAsTheOpenLimit) {
  Answered answered;
  std::vector<std::string> ids;
  for (int round = 1; round <= 4; ++round) {
    ids.push_back(answered.open());
    answered.add(ids.back(), {});
  }
  EXPECT_EQ(status_of([&] { answered.add(ids[0], {}); }), 410);
  EXPECT_TRUE(answered.add(ids[1], {}).duplicate);
}

TEST(FirstAnswersTest, AListOfAnEarlierRunTakesItsFeedbackUntilItExpires) {
  const std::int64_t now = utc_milliseconds();
  Answered answered({10, std::chrono::seconds(1000)}, "0123456789abcdef");
  answered.start(true);
  const std::string expired = answered.open(now - 1'000'001);
  const std::string waiting = answered.open(now - 100'000);
  const std::string taken = answered.open(now - 100'000);
  answered.add(taken, {{0, ""}}, now - 100'000);
  answered.prefix = "fedcba9876543210";
  answered.start(true);
  EXPECT_EQ(answered.lists->counts().open, 1U);
  const std::int64_t steady = steady_milliseconds();
  EXPECT_EQ(status_of([&] { answered.add(expired, {}, steady); }), 410);
  EXPECT_EQ(status_of([&] { answered.add("nothing", {}, steady); }), 404);
  EXPECT_TRUE(answered.add(taken, {{0, ""}}, steady).duplicate);
  EXPECT_EQ(answered.add(waiting, {{1, ""}}, steady).clicks, (std::vector<std::uint8_t>{0, 1, 0}));
  EXPECT_EQ(answered.logged().impression, waiting);
  answered.start(true);
  EXPECT_EQ(answered.lists->counts().open, 0U);
  const std::string last = answered.open(now);
  answered.prefix = "0123456789abcdef";
  answered.start(true);
  EXPECT_EQ(status_of([&] { answered.add(last, {}, steady + 1'001'000'000); }), 410);
}

}  // namespace
}  // namespace olrank
