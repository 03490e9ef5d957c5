#include "serve/impressions.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "serve/api_error.h"
#include "serve/file_log.h"
#include "serve/impression_file.h"
#include "serve/metrics.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

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

namespace fs = std::filesystem;

class ImpressionFileTest : public ::testing::Test {
 protected:
  static OpenList list(std::int64_t time, const std::string& id = "0123456789abcdef-1") {
    OpenList made;
    FeedbackRecord& record = made.record;
    record.impression = id;
    record.query = "ja\"cket\n";
    record.docs = {{"a", false}, {"7", true}, {"", false}};
    record.has_unshown = true;
    record.groups = {DocGroup::kA, DocGroup::kB, DocGroup::kA};
    record.time = time;
    record.snapshot = 12;
    record.explored = true;
    record.propensity = {0.5, 1.0 / 3.0};
    record.incumbent = {{"7", true}, {"a", false}};
    record.experiment = "0d2ecefdec8a";
    record.arm = "learner";
    record.bucket = 77;
    record.teams = "AB";
    record.candidate = {{"a", false}};
    record.columns = 2;
    record.inputs = {0.1F, -2.0F, 3e-30F, 4.0F, 5.0F, 6.0F};
    made.shown = 2;
    return made;
  }
  ImpressionFile::Settings settings() const {
    ImpressionFile::Settings settings;
    settings.folder = folder_.path();
    settings.age_ms = 1000;
    return settings;
  }
  static void append(ImpressionFile& file, const OpenList& list) {
    file.append(list.record.impression, ImpressionFile::encoded(list.record, list.shown), list.record.time);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_.path())) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }

  TemporaryFolder folder_;
};

TEST_F(ImpressionFileTest, GivesBackAllOfAList) {
  {
    ImpressionFile file(settings(), 100);
    append(file, list(100));
    append(file, list(150, "0123456789abcdef-2"));
  }
  const ImpressionFile again(settings(), 200);
  const std::vector<OpenList> lists = again.take_up(200);
  ASSERT_EQ(lists.size(), 2);
  EXPECT_EQ(lists[0].record, list(100).record);
  EXPECT_EQ(lists[0].shown, 2);
  EXPECT_EQ(lists[1].record.impression, "0123456789abcdef-2");
  // The first one has expired.
  EXPECT_EQ(again.take_up(1101).size(), 1);
}

TEST_F(ImpressionFileTest, KeepsWhatIsBeforeATornEnd) {
  {
    ImpressionFile file(settings(), 0);
    for (int i = 1; i <= 3; ++i) append(file, list(i, fmt::format("0123456789abcdef-{}", i)));
  }
  const fs::path torn = files().front();
  const auto whole = fs::file_size(torn);
  for (const auto kept : {whole - 1, whole - 40, 2 * whole / 3 + 5}) {
    fs::resize_file(torn, kept);
    EXPECT_EQ(ImpressionFile(settings(), 10).take_up(10).size(), 2) << kept;
  }
  std::fstream damaged(torn, std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekp(static_cast<std::streamoff>(whole / 3 + 30));
  damaged.put('!');
  damaged.close();
  EXPECT_EQ(ImpressionFile(settings(), 10).take_up(10).size(), 1);
}

TEST_F(ImpressionFileTest, RefusesBytesThatAreNoList) {
  const OpenList one = list(5);
  const std::string id("\x02\0\0\0id", 6);
  const std::string bytes = id + ImpressionFile::encoded(one.record, one.shown);
  EXPECT_TRUE(ImpressionFile::decoded(bytes));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(ImpressionFile::decoded(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(ImpressionFile::decoded(bytes + "x"));
  EXPECT_FALSE(ImpressionFile::decoded(id + ImpressionFile::encoded(one.record, 4)));
}

TEST_F(ImpressionFileTest, RemovesFilesWhoseListsHaveExpired) {
  ImpressionFile file(settings(), 0);
  for (std::int64_t time = 0; time < 5000; time += 10) append(file, list(time));
  // An eighth of a life each, and one more that waits for its last list to expire.
  EXPECT_LE(files().size(), 10);
  EXPECT_GE(files().size(), 8);
  EXPECT_GE(ImpressionFile(settings(), 4990).take_up(4990).size(), 100);
}

TEST_F(ImpressionFileTest, StaysWithinItsBytes) {
  ImpressionFile::Settings small = settings();
  small.bytes = 20'000;
  ImpressionFile file(small, 0);
  for (std::int64_t time = 0; time < 1000; ++time) append(file, list(time));
  std::uintmax_t bytes = 0;
  for (const fs::path& path : files()) bytes += fs::file_size(path);
  // All but the file that is written to, with an eighth of the lists.
  EXPECT_LE(bytes, 20'000 + 126 * 400);
}

TEST_F(ImpressionFileTest, SaysOnceThatNothingCanBeWritten) {
  ImpressionFile::Settings guarded = settings();
  guarded.guard = [] { throw IoError("The lock is gone."); };
  ImpressionFile file(guarded, 0);
  const ExpectedWarnings warnings;
  append(file, list(1));
  append(file, list(2));
  EXPECT_EQ(warnings.count("will not survive a restart: The lock is gone."), 1);
  EXPECT_TRUE(files().empty());
}

TEST_F(ImpressionFileTest, SetsAsideWhatAnEarlierStateHad) {
  {
    ImpressionFile file(settings(), 0);
    append(file, list(1));
  }
  ImpressionFile::Settings over = settings();
  over.starts_over = true;
  EXPECT_TRUE(ImpressionFile(over, 2).take_up(2).empty());
  ASSERT_EQ(files().size(), 1);
  EXPECT_TRUE(files().front().string().ends_with(".set-aside"));
}

TEST_F(ImpressionFileTest, AReopenedListTakesItsFeedbackUntilItExpires) {
  using Time = Impressions::Clock::time_point;
  Impressions impressions({10, std::chrono::seconds(1), 100'000}, "fedcba9876543210");
  const Time now = Time{} + std::chrono::hours(1);
  impressions.reopen(list(100), 600, now);
  impressions.reopen(list(100), 600, now);                         // the same once more
  impressions.reopen(list(100, "0123456789abcdef-2"), 1200, now);  // expired
  EXPECT_EQ(impressions.counts().open, 1);
  const auto refused = [&](const std::string& id, Time at) {
    try {
      impressions.claim(id, {}, at);
    } catch (const ApiError& error) {
      return error.status();
    }
    return 200;
  };
  EXPECT_EQ(refused("0123456789abcdef-2", now), 410);
  EXPECT_EQ(refused("nothing", now), 404);
  auto claim = impressions.claim("0123456789abcdef-1", std::vector<Impressions::Click>{{1, ""}}, now);
  EXPECT_EQ(claim.record.clicks, (std::vector<std::uint8_t>{0, 1}));
  impressions.release(std::move(claim.record));
  EXPECT_EQ(refused("0123456789abcdef-1", now + std::chrono::milliseconds(499)), 200);
  Impressions late({10, std::chrono::seconds(1), 100'000}, "fedcba9876543210");
  late.reopen(list(100), 600, now);
  EXPECT_THROW(late.claim("0123456789abcdef-1", {}, now + std::chrono::milliseconds(501)), ApiError);
}

RecentLists::List list_of(int number, std::optional<std::int64_t> certain_pairs, int docs = 3) {
  RecentLists::List list;
  list.impression = fmt::format("i-{}", number);
  list.query = "a \"query\"";
  list.shown = docs;
  for (int doc = 0; doc < docs; ++doc) list.docs.push_back({fmt::format("{}", doc), doc % 2 == 1});
  if (certain_pairs) {
    list.certainty.emplace();
    list.certainty->shown_pairs = 4;
    list.certainty->certain_pairs = *certain_pairs;
  }
  return list;
}

TEST(RecentListsTest, KeepsTheLatestWithTheirClicks) {
  RecentLists recent;
  for (int number = 1; number <= 50; ++number) recent.add(list_of(number, 1, number == 50 ? 30 : 3));
  const std::vector<std::uint8_t> clicks = {0, 1, 0};
  recent.add_clicks("i-49", clicks);
  recent.add_clicks("i-2", clicks);  // gone
  const auto lists = nlohmann::json::parse(recent.lists_json());
  ASSERT_EQ(lists.size(), RecentLists::kLists);
  EXPECT_EQ(lists[0]["impression"], "i-50");
  EXPECT_EQ(lists[0]["docs"].size(), RecentLists::kDocs);
  EXPECT_EQ(lists[0]["shown"], 30);
  EXPECT_TRUE(lists[0]["clicks"].is_null());
  EXPECT_EQ(lists[1]["clicks"], nlohmann::json::parse("[0, 1, 0]"));
  EXPECT_EQ(lists[1]["docs"], nlohmann::json::parse(R"(["0", 1, "2"])"));
  EXPECT_EQ(lists[1]["query"], "a \"query\"");
  EXPECT_EQ(lists[1]["certain_share"], 0.25);
  EXPECT_EQ(lists.back()["impression"], "i-31");
}

// However long the service runs, the history has at most 128 points, and their mean is that of all lists.
TEST(RecentListsTest, HistoryCoversAllListsInEqualPeriods) {
  RecentLists recent;
  std::int64_t certain = 0;
  for (int number = 1; number <= 4096; ++number) {
    recent.add(list_of(number, number % 5));
    certain += number % 5;
    const auto history = nlohmann::json::parse(recent.history_json());
    ASSERT_LE(history.size(), RecentLists::kPeriods);
    ASSERT_GE(2 * history.back()["lists"].get<int>(), number);
  }
  const auto history = nlohmann::json::parse(recent.history_json());
  ASSERT_EQ(history.size(), RecentLists::kPeriods);
  double sum = 0.0;
  for (std::size_t i = 0; i < history.size(); ++i) {
    EXPECT_EQ(history[i]["lists"], 32 * (i + 1));
    sum += history[i]["certain_share"].get<double>() * 32 * 4;
  }
  EXPECT_NEAR(sum, static_cast<double>(certain), 1e-6);
}

TEST(RecentListsTest, WithoutCertainOrdersThereIsNoShare) {
  RecentLists recent;
  EXPECT_EQ(recent.history_json(), "[]");
  recent.add(list_of(1, std::nullopt));
  EXPECT_TRUE(nlohmann::json::parse(recent.lists_json())[0]["certain_share"].is_null());
  EXPECT_TRUE(nlohmann::json::parse(recent.history_json())[0]["certain_share"].is_null());
}

TEST(MetricsTest, SummarisesLatenciesByRoute) {
  Metrics metrics;
  EXPECT_FALSE(metrics.knows_certainty());
  // Evenly from 1 to 2 ms, which is one bucket, and one beyond the last bound.
  for (int number = 0; number < 99; ++number) metrics.count_request("/a", 200, 0.0015);
  metrics.count_request("/a", 500, 60.0);
  metrics.count_request("/b", 404, 0.0001);
  const auto summaries = metrics.summaries();
  ASSERT_EQ(summaries.size(), 2U);
  EXPECT_EQ(summaries[0].route, "/a");
  EXPECT_EQ(summaries[0].requests, 100U);
  EXPECT_EQ(summaries[0].errors, 1U);
  EXPECT_NEAR(summaries[0].median, 0.001 + 0.001 * 50 / 99, 1e-12);
  EXPECT_NEAR(summaries[0].p99, 0.002, 1e-12);
  EXPECT_EQ(summaries[1].errors, 1U);
  EXPECT_LT(summaries[1].p99, 0.0005);
  for (int number = 0; number < 10; ++number) metrics.count_request("/a", 200, 60.0);
  EXPECT_EQ(metrics.summaries()[0].p99, 10.0);
}

}  // namespace
}  // namespace olrank
