#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/io/atomic_file.h"
#include "serve/document_store.h"
#include "serve/model_follower.h"
#include "serve/redis_lists.h"
#include "serve/redis_log.h"
#include "serve/service_identity.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/api_refusal.h"
#include "tests/support/cases.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/redis_server.h"

namespace olrank {
namespace {

using Click = ImpressionStore::Click;
using Event = ImpressionStore::Event;
constexpr const char* kStart = "0123456789abcdef";

SharedSettings some_settings(std::int64_t cutoff = 5) {
  ServiceIdentity identity;
  identity.features = kServedFeatures;
  identity.cutoff = cutoff;
  identity.normalisation = R"({"kind":"none","features":4})";
  return {print_identity(identity), "", "", {}, "window is 0\n"};
}

FeedbackRecord list_of(int number) {
  FeedbackRecord list = liked_first_feature(number);
  list.clicks.clear();
  list.impression.clear();
  list.time = utc_milliseconds();
  return list;
}

TEST(RedisAddressTest, ReadsAddressesAndSaysWhatIsWrong) {
  const RedisAddress address = RedisAddress::parse("rediss://learner@[::1]:6380/shop:{a}.1");
  EXPECT_TRUE(address.tls);
  EXPECT_EQ(address.user, "learner");
  EXPECT_EQ(address.host, "::1");
  EXPECT_EQ(address.port, 6380);
  EXPECT_EQ(address.prefix, "shop:{a}.1");
  EXPECT_EQ(RedisAddress::parse(address.text()).text(), address.text());
  EXPECT_EQ(RedisAddress::parse("redis://host/p").text(), "redis://host:6379/p");
  expect_cases("serve/refusals.txt", "addresses of a shared log", [](const std::string& text) {
    const std::string refusal = message_of<InvalidArgument>([&] { RedisAddress::parse(text); });
    EXPECT_FALSE(contains(refusal, "secret"));
    return refusal;
  });
}

TEST(SharedSettingsTest, NamesEachDifference) {
  SharedSettings other = some_settings(7);
  other.lists = "window is 60\n";
  other.arms = "an arm";
  EXPECT_EQ(other.difference_to(some_settings()),
            "cutoff is 5, not 7; window is 0, not 60; the arms differ");
  EXPECT_EQ(some_settings().difference_to(some_settings()), "");
  EXPECT_NE(other.digest(), some_settings().digest());
}

class RedisTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::is_installed()) GTEST_SKIP() << "redis-server is not installed.";
    server = std::make_unique<RedisServer>();
    client = std::make_unique<RedisClient>(server->settings());
    log = std::make_unique<RedisLog>(*client, RedisLog::Durability{});
    client->call({"SET", "olrank:rounds", "0"});  // as a learner does at its start
  }

  const TemporaryFolder folder;
  const std::vector<Click> clicks = {{1, ""}};
  std::unique_ptr<RedisServer> server;
  std::unique_ptr<RedisClient> client;
  std::unique_ptr<RedisLog> log;
};

/// Its tests let something fail, which warns; no other test of Redis may warn.
class RedisFaultTest : public RedisTest {
 protected:
  const ExpectedWarnings warnings;
};

/// A file's store and this one give the same answers and the same records to the same calls.
TEST_F(RedisTest, ListsBehaveAsThoseOfOneProcess) {
  FileLog file(folder / "log", 100);
  FirstAnswers alone({ImpressionLimits{}, kStart}, file);
  RedisLists shared(*log, {}, kStart);
  std::vector<std::string> bodies;
  for (int number = 1; number <= 3; ++number) {
    const FeedbackRecord list = list_of(number);
    const std::string id = alone.open(list, 3);
    EXPECT_EQ(shared.open(list, 3), id);
    const std::vector<Click> clicks = {{-1, "d2"}, {0, ""}};
    const std::vector<Click> unknown = {{-1, "d4"}};
    for (ImpressionStore* store :
         {static_cast<ImpressionStore*>(&alone), static_cast<ImpressionStore*>(&shared)}) {
      EXPECT_EQ(status_of([&] { store->add(id, unknown, {}); }), 422);
      const ImpressionStore::Outcome first = store->add(id, clicks, {});
      EXPECT_FALSE(first.duplicate);
      EXPECT_EQ(first.round, number);
      EXPECT_EQ(first.clicks, (std::vector<std::uint8_t>{1, 0, 1}));
      const ImpressionStore::Outcome again = store->add(id, clicks, {});
      EXPECT_TRUE(again.duplicate);
      EXPECT_EQ(again.round, number);
      EXPECT_EQ(status_of([&] { store->add(id, {}, {}); }), 409);
      EXPECT_EQ(status_of([&] { store->add("ffffffffffffffff-99", clicks, {}); }), 410);
      EXPECT_EQ(status_of([&] { store->add("nonsense", clicks, {}); }), 404);
    }
    bodies = log->read(0, 100, std::chrono::milliseconds(1));
    ASSERT_EQ(std::ssize(bodies), number);
    EXPECT_EQ(record_line(number, bodies.back()), file.line_before(file.bytes()) + "\n");
  }
  EXPECT_EQ(shared.counts().opened, 3U);
}

TEST_F(RedisTest, UnknownListsHoldAFewThreadsAtMost) {
  RedisLists lists(*log, {}, kStart);
  lists.open(list_of(1), 3);
  const auto calls = [&] {  // of GET, by the server's count
    const std::string text = client->call({"INFO", "commandstats"}).text;
    const std::size_t found = text.find("cmdstat_get:calls=");
    return found == std::string::npos ? 0 : std::stoi(text.substr(found + 18));
  };
  // This process knows that it has given no such ID, and asks once.
  int before = calls();
  EXPECT_EQ(status_of([&] { lists.add(fmt::format("{}-2", kStart), {}, {}); }), 410);
  EXPECT_EQ(calls() - before, 2);
  // Another process may have, and its list be on the way.
  before = calls();
  EXPECT_EQ(status_of([&] { lists.add("ffffffffffffffff-2", {}, {}); }), 410);
  EXPECT_GT(calls() - before, 4);
  std::atomic<int> expired = 0;
  std::atomic<int> sent_away = 0;
  constexpr int kThreads = 40;
  in_threads(kThreads, [&](int) {
    const int status = status_of([&] { lists.add("ffffffffffffffff-2", {}, {}); });
    expired += status == 410 ? 1 : 0;
    sent_away += status == 503 ? 1 : 0;
  });
  EXPECT_EQ(expired + sent_away, kThreads);
  EXPECT_GE(expired, 8);
  EXPECT_GT(sent_away, 0);
  EXPECT_EQ(status_of([&] { lists.add("ffffffffffffffff-2", {}, {}); }), 410);  // there is room again
}

TEST_F(RedisTest, FeedbackGoesToAnyProcessAndCountsOnceEverywhere) {
  RedisLists first(*log, {}, kStart);
  RedisLists second(*log, {}, "fedcba9876543210");
  const std::string id = first.open(list_of(1), 3);
  std::atomic<int> accepted = 0;
  in_threads(8, [&](int thread) {
    accepted += (thread % 2 == 0 ? first : second).add(id, clicks, {}).duplicate ? 0 : 1;
  });
  EXPECT_EQ(accepted, 1);
  EXPECT_EQ(log->rounds(), 1U);  // without a poll
  EXPECT_EQ(log->read(0, 10, std::chrono::milliseconds(1)).size(), 1U);
}

/// The clock of the first process is an hour ahead and that of the second an hour behind.
TEST_F(RedisTest, WindowsCollectEventsOfAllProcessesAndCloseOnce) {
  RedisLists::Settings settings;
  settings.window = std::chrono::milliseconds(1500);
  settings.types = EventTypes::parse("click=1,cart=3");
  RedisLists first(*log, settings, kStart);
  RedisLists second(*log, settings, "fedcba9876543210");
  FeedbackRecord ahead = list_of(1);
  ahead.time += 3'600'000;
  FeedbackRecord behind = list_of(2);
  behind.time -= 3'600'000;
  const std::string id = first.open(std::move(ahead), 3);
  const std::string quiet = second.open(std::move(behind), 3);
  EXPECT_FALSE(first.add(quiet, {}, {}).late);
  EXPECT_FALSE(second.add(id, {}, std::vector{Event{{2, ""}, "click", 0}}).duplicate);
  EXPECT_TRUE(first.add(id, {}, std::vector{Event{{2, ""}, "click", 0}}).duplicate);
  const ImpressionStore::Outcome cart = first.add(id, {}, std::vector{Event{{-1, "d0"}, "cart", 0}});
  EXPECT_EQ(cart.clicks, (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_FALSE(cart.round.has_value());
  EXPECT_EQ(status_of([&] { first.add(id, {}, std::vector{Event{{2, ""}, "wish", 0}}); }), 422);
  const std::string refusal = message_of<InvalidArgument>(
      [&] { RedisLists::require_types(*client, EventTypes::parse("click=1")); });
  EXPECT_TRUE(contains(refusal, "of types that this start does not name: cart (1)."));
  RedisLists::require_types(*client, settings.types);
  std::size_t closed = 0;
  wait_until([&] { return (closed += first.close_due().size() + second.close_due().size()) >= 2; });
  EXPECT_EQ(closed, 2U);
  EXPECT_EQ(log->rounds(), 2U);
  const std::vector<std::string> bodies = log->read(0, 10, std::chrono::milliseconds(1));
  ASSERT_EQ(bodies.size(), 2U);
  FeedbackRecord record;
  for (std::uint64_t round = 1; round <= 2; ++round) {
    const std::string line = record_line(round, bodies[round - 1]);
    ASSERT_FALSE(parse_record(std::string_view(line).substr(0, line.size() - 1), record));
    EXPECT_EQ(record.clicks, record.impression == id ? (std::vector<std::uint8_t>{1, 0, 1})
                                                     : (std::vector<std::uint8_t>{0, 0, 0}));
    EXPECT_EQ(record.reward(), record.impression == id ? 4.0 : 0.0);
  }
  EXPECT_TRUE(first.add(quiet, {}, std::vector{Event{{1, ""}, "click", 0}}).late);
  EXPECT_EQ(first.counts().late, 1U);
  RedisLists::require_types(*client, {});  // nothing is open any more
}

TEST_F(RedisFaultTest, ListsWaitForAServerThatIsAway) {
  RedisLists lists(*log, {}, kStart);
  client->call({"PING"});
  server->kill();
  EXPECT_THROW(client->call({"PING"}), RedisAway);
  EXPECT_TRUE(client->is_away());
  const auto begin = std::chrono::steady_clock::now();
  const std::string id = lists.open(list_of(1), 3);
  EXPECT_THROW(lists.add(id, clicks, {}), RedisAway);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(900));  // no waiting
  EXPECT_EQ(lists.counts().open, 1U);
  EXPECT_THROW(client->probe(), RedisAway);
  server->start();
  client->probe();
  EXPECT_FALSE(client->is_away());
  EXPECT_EQ(lists.add(id, clicks, {}).round, 1U);
  EXPECT_EQ(lists.counts().open, 0U);
  EXPECT_EQ(warnings.count("cannot be reached"), 1);
  EXPECT_EQ(warnings.count("can be reached again"), 1);
}

/// Lists on their way count against the limit, and only those that wait can go.
TEST_F(RedisTest, ListsBeyondTheLimitAreDropped) {
  RedisLists::Settings settings;
  settings.limits.bytes = 1;
  RedisLists lists(*log, settings, kStart);
  for (int number = 1; number <= 200; ++number) lists.open(list_of(number), 3);
  EXPECT_EQ(lists.counts().opened, 200U);
  EXPECT_EQ(lists.counts().dropped, 200U);
  settings.limits.bytes = 2000;  // some lists
  RedisLists more(*log, settings, "fedcba9876543210");
  for (int number = 1; number <= 2000; ++number) more.open(list_of(number), 3);
  more.keep_open();
  EXPECT_EQ(more.counts().open, 0U);
}

TEST_F(RedisFaultTest, AServerWithoutMemoryLosesNoList) {
  client->call({"CONFIG", "SET", "maxmemory", "1"});
  RedisLists lists(*log, {}, kStart);
  const std::string id = lists.open(list_of(1), 3);
  EXPECT_EQ(status_of([&] { lists.add(id, clicks, {}); }), 503);
  EXPECT_EQ(warnings.count("Lists wait in this process"), 1);
  client->call({"CONFIG", "SET", "maxmemory", "0"});
  wait_until([&] { return lists.counts().open == 0; });
  EXPECT_EQ(lists.add(id, clicks, {}).round, 1U);
  EXPECT_EQ(warnings.count("takes lists again"), 1);
}

TEST_F(RedisTest, AServerThatLostItsDataAcknowledgesNothing) {
  log->begin(some_settings(), false);
  RedisLists lists(*log, {}, kStart);
  const std::string id = lists.open(list_of(1), 3);
  lists.keep_open();
  client->call({"FLUSHALL"});
  const std::string other = lists.open(list_of(2), 3);
  lists.keep_open();
  EXPECT_EQ(status_of([&] { lists.add(id, clicks, {}); }), 410);
  EXPECT_TRUE(contains(message_of<RedisError>([&] { lists.add(other, clicks, {}); }), "has lost its data"));
  // Replicas keep what they have, so that this is not as if the settings were replaced.
  EXPECT_TRUE(contains(message_of<IoError>([&] { log->poll(); }), "has lost its data"));
  log->begin(some_settings(), false);
  log->begin_after({0, 7, "a hash"});
  log->begin_after({0, 9, "somebody was faster"});
  EXPECT_EQ(lists.add(other, clicks, {}).round, 8U);
}

/// The answer to the sender may be lost after the list was stored, and the list sent again after its end.
TEST_F(RedisTest, AListThatIsClosedIsNotStoredAgain) {
  RedisLists::Settings settings;
  settings.window = std::chrono::milliseconds(1);
  for (int time = 0; time < 2; ++time) {
    RedisLists lists(*log, settings, kStart);  // gives the same ID again
    lists.open(list_of(1), 3);
    lists.keep_open();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(lists.close_due().size(), time == 0 ? 1U : 0U);
  }
  EXPECT_EQ(log->read(0, 10, std::chrono::milliseconds(1)).size(), 1U);
}

TEST(ModelFollowerTest, ARefusedModelIsRememberedUntilTheNextOne) {
  const ExpectedWarnings warnings;
  const TemporaryFolder folder;
  FileLog file(folder / "log", 10);
  Learner learner(make_served(), file, {folder / "checkpoint", "identity", 1000});
  std::atomic<int> calls = 0;
  const auto fetch = [&]() -> std::optional<std::string> {
    const int call = ++calls;
    if (call == 1) return "no model";
    if (call == 6) return learner.snapshot().bytes;
    return std::nullopt;
  };
  ModelFollower follower(SnapshotReader(make_served(), std::nullopt), fetch, "the prefix");
  follower.start();
  while (calls < 4) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(contains(follower.failure().value_or(""), "the prefix"));
  EXPECT_GT(*follower.model_age(), 0.15);
  while (calls < 8) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(follower.failure().has_value());
  EXPECT_LT(*follower.model_age(), 2.0);
  EXPECT_EQ(warnings.count("The last model stays"), 1);
}

TEST(ModelFollowerTest, AFailureAndItsEndAreLoggedOnce) {
  const ExpectedWarnings warnings;
  FollowingLog log;
  FollowingLog::Time now{};
  const auto pass = [&](int polls, const auto& problem_of) {
    for (int poll = 0; poll < polls; ++poll)
      log.tell(problem_of(poll), now += std::chrono::milliseconds(100));
  };
  using Lines = std::vector<std::string>;
  pass(10, [](int) { return ""; });
  EXPECT_EQ(warnings.messages(), Lines());
  pass(250, [](int poll) { return poll % 2 == 0 ? "Refused." : poll % 3 == 0 ? "" : "Timeout."; });
  EXPECT_EQ(warnings.messages(), Lines({"The last model stays: Refused."}));
  pass(600, [](int) { return ""; });
  EXPECT_EQ(warnings.messages(),
            Lines({"The last model stays: Refused.", "The latest model is read again."}));
  pass(600, [](int) { return "Refused."; });
  EXPECT_EQ(warnings.count("Refused."), 2);
  pass(1, [](int) { return ""; });
  EXPECT_EQ(warnings.count("read again"), 2);  // at once after a long failure
}

TEST_F(RedisTest, OnlyTheSameSettingsShareAPrefix) {
  EXPECT_FALSE(log->settings().has_value());
  log->begin(some_settings(), false);
  EXPECT_EQ(log->settings()->identity, some_settings().identity);
  RedisLog other(*client, {});
  const std::string refusal = message_of<InvalidArgument>([&] { other.begin(some_settings(7), false); });
  EXPECT_TRUE(contains(refusal, "cutoff is 5, not 7"));
  log->poll();
  other.begin(some_settings(7), true);
  EXPECT_THROW(log->poll(), SettingsReplaced);
  other.poll();
}

TEST_F(RedisTest, ModelsAreReplacedByLaterRoundsOnly) {
  log->begin(some_settings(), false);
  EXPECT_FALSE(log->model().has_value());
  log->publish(5, "five");
  log->publish(4, "four");
  EXPECT_EQ(log->model(), "five");
  log->publish(6, "six");
  log->poll();
  EXPECT_EQ(log->model_round(), 6);
  EXPECT_EQ(log->model(), "six");
  // Arms were replaced: an earlier process no longer publishes, and a new one does at any round.
  RedisLog later(*client, {});
  SharedSettings others = some_settings();
  others.arms = "other";
  later.begin(others, true);
  log->publish(7, "seven");
  EXPECT_FALSE(later.model().has_value());
  later.publish(3, "three");
  EXPECT_EQ(later.model(), "three");
}

/// A learner with its archive.
struct Process {
  Process(const TemporaryFolder& folder, const std::string& name, RedisLog& stream,
          std::optional<std::uint64_t> to_round = std::nullopt)
      : file(folder / (name + ".log"), 10, false, FileLog::Access::kWrite, to_round),
        learner(make_served(), file, {folder / (name + ".checkpoint"), "identity", 1000, 0, true}),
        archive(stream, file, learner, {name, 5, {}, std::chrono::milliseconds(50)}) {
    learner.start();
    archive.start();
  }
  ~Process() {
    archive.stop();
    learner.stop(std::chrono::seconds(10));
  }
  FileLog file;
  Learner learner;
  StreamArchive archive;
};

std::vector<Click> liked_clicks(int number) {
  std::vector<Click> clicks;
  const FeedbackRecord liked = liked_first_feature(number);
  for (std::int64_t rank = 0; rank < 5; ++rank) {
    if (liked.clicks[rank] != 0) clicks.push_back({rank, ""});
  }
  return clicks;
}

/// Shows a list and sends its clicks; the ID of the list.
std::string answer_list(RedisLists& lists, int number) {
  const std::string id = lists.open(list_of(number), 5);
  lists.add(id, liked_clicks(number), {});
  return id;
}

/// The lists of an archive, in order.
std::vector<std::string> archived_lists(const FileLog& file) {
  std::vector<std::string> ids;
  for (const FeedbackRecord& record : records_of(file)) ids.push_back(record.impression);
  return ids;
}

/// Feedback is refused until the server has its records back.
std::uint64_t round_of_retried(RedisLists& lists, const std::string& id, int number) {
  for (int time = 0; time < 2000; ++time) {
    try {
      return lists.add(id, liked_clicks(number), {}).round.value_or(0);
    } catch (const std::exception&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return 0;
}

/// A log that has begun, with its lists and the folders of its learners.
class ArchiveTest : public RedisFaultTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (!log) return;
    log->begin(some_settings(), false);
    lists.emplace(*log, RedisLists::Settings{}, kStart);
  }
  /// Shows and answers lists; their IDs.
  std::vector<std::string> answer(int first, int last) {
    std::vector<std::string> ids;
    for (int number = first; number <= last; ++number) ids.push_back(answer_list(*lists, number));
    return ids;
  }

  std::optional<RedisLists> lists;
};

TEST_F(ArchiveTest, RecordsThatTheServerLostAreSentAgainWithTheirRounds) {
  Process process(folder, "learner", *log);
  std::vector<std::string> ids = answer(1, 20);
  server->keep();
  for (const std::string& id : answer(21, 30)) ids.push_back(id);
  wait_until([&] { return process.file.rounds() == 30; });
  server->set_back();
  for (int number = 31; number <= 40; ++number) {
    ids.push_back(lists->open(list_of(number), 5));
    EXPECT_EQ(round_of_retried(*lists, ids.back(), number), number);
  }
  // Acknowledged feedback stays acknowledged, though the server had forgotten it.
  EXPECT_TRUE(lists->add(ids[24], liked_clicks(25), {}).duplicate);
  EXPECT_EQ(lists->add(ids[24], liked_clicks(25), {}).round, 25U);
  wait_until([&] { return process.file.rounds() == 40; });
  EXPECT_EQ(archived_lists(process.file), ids);
  wait_for_round(process.learner, 40);
  EXPECT_FALSE(log->fault().has_value());
  EXPECT_FALSE(log->is_behind());
  EXPECT_EQ(warnings.count("sending it records 21 to 30 again"), 1);
  EXPECT_EQ(warnings.count("The server has 30 records again"), 1);
}

/// A process that has seen no more may use the lost rounds before the learner is back. Nothing is lost: the
/// learner's records come behind, and its archive is taken up where the two still agree.
TEST_F(ArchiveTest, RoundsThatWereUsedAgainAreToldAndNoRecordIsLost) {
  std::vector<std::string> ids;
  const auto answer_more = [&](RedisLists& to, int first, int last) {
    for (int number = first; number <= last; ++number) ids.push_back(answer_list(to, number));
  };
  {
    Process process(folder, "learner", *log);
    answer_more(*lists, 1, 20);
    ids.push_back(lists->open(list_of(21), 5));
    lists->keep_open();
    server->keep();
    lists->add(ids.back(), liked_clicks(21), {});
    answer_more(*lists, 22, 30);
    wait_until([&] { return process.file.rounds() == 30; });
  }
  server->set_back();
  RedisClient fresh_client(server->settings());
  RedisLog fresh(fresh_client, {});
  fresh.begin(some_settings(), false);
  fresh.poll();
  RedisLists later(fresh, {}, "fedcba9876543210");
  answer_more(later, 31, 34);
  EXPECT_EQ(later.add(ids[20], liked_clicks(21), {}).round, 25U);  // its user repeats it
  for (int time = 0; time < 2; ++time) {
    try {
      Process(folder, "learner", fresh);
      ADD_FAILURE() << "The archive differs.";
    } catch (const ArchiveDiffers& differs) {
      EXPECT_EQ(differs.common, 20U);
      const std::string told = differs.what();
      EXPECT_TRUE(contains(told, "From record 21 on"));
      EXPECT_TRUE(contains(told, "records 21 to 30 of this log"));
    }
  }
  EXPECT_EQ(warnings.count("was sent to the server again, as record"), 9);
  EXPECT_EQ(warnings.count(
                "Record 22 (impression 0123456789abcdef-22) was sent to the server again, as record 26"),
            1);
  Process process(folder, "learner", fresh, 20);
  wait_until([&] { return process.file.rounds() == 34; });
  std::vector<std::string> archived = archived_lists(process.file);
  EXPECT_EQ(archived[24], ids[20]);
  std::sort(archived.begin(), archived.end());
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(archived, ids);
  wait_for_round(process.learner, 34);
}

/// A learner that runs while its records are replaced stops publishing, and says so.
TEST_F(ArchiveTest, ALearnerWithOtherRecordsStopsPublishing) {
  Process process(folder, "learner", *log);
  answer(1, 30);
  wait_until([&] { return log->model_round() == 30; });
  client->call({"EVAL",
                R"lua(
local before = redis.call('XRANGE', 'olrank:log', '28-0', '28-0')[1][2][4]
local other = string.gsub(redis.call('XRANGE', 'olrank:log', '28-0', '28-0')[1][2][2], '-28"', '-99"')
redis.call('XDEL', 'olrank:log', '28-0', '29-0', '30-0')
redis.call('XSETID', 'olrank:log', '27-0')
redis.call('XADD', 'olrank:log', '28-0', 'record', other, 'before', before)
redis.call('DEL', 'olrank:answered:0123456789abcdef-28', 'olrank:answered:0123456789abcdef-29', 'olrank:answered:0123456789abcdef-30')
redis.call('SET', 'olrank:rounds', '28')
redis.call('HSET', 'olrank:chain', 'round', '28', 'hash', 'other'))lua",
                "0"});
  wait_until([&] { return log->fault().has_value(); });
  EXPECT_NE(log->fault()->find("From record 28 on"), std::string::npos) << *log->fault();
  EXPECT_EQ(warnings.count("It publishes no more models"), 1);
  EXPECT_EQ(warnings.count("was sent to the server again, as record"), 3);
  EXPECT_EQ(answer_list(*lists, 32).size(), 19U);  // others go on
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(process.file.rounds(), 30U);
  EXPECT_EQ(log->model_round(), 30);
  process.archive.require_running();
  EXPECT_EQ(log->records(28, 100, 100).size(), 5U);
}

/// Records that nobody has archived are lost with the server's disk: they are named, and feedback goes on.
TEST_F(ArchiveTest, RecordsThatNobodyHasAreGivenUp) {
  answer(1, 20);
  server->keep();
  answer(21, 30);
  server->set_back();
  RedisClient fresh_client(server->settings());
  RedisLog fresh(fresh_client, {});
  fresh.begin(some_settings(), false);
  RedisLists later(fresh, {}, "fedcba9876543210");
  const std::string id = later.open(list_of(31), 5);
  const std::string other = lists->open(list_of(32), 5);
  later.keep_open();
  lists->keep_open();
  // A process that has seen 30 acknowledges nothing, and tells those that have not.
  for (auto [store, list] : {std::pair{&*lists, other}, std::pair{&later, id}})
    EXPECT_TRUE(
        contains(message_of<RedisError>([&, store = store, list = list] { store->add(list, {}, {}); }),
                 "fewer records than were acknowledged"));
  Process process(folder, "learner", fresh);
  EXPECT_EQ(round_of_retried(later, id, 31), 21U);
  log->poll();
  EXPECT_EQ(log->rounds(), 21U);
  EXPECT_EQ(round_of_retried(*lists, other, 32), 22U);
  EXPECT_EQ(warnings.count("Records 21 to 30 were acknowledged"), 1);
  wait_for_round(process.learner, 22);
}

TEST_F(ArchiveTest, ALearnerRestoresTheCounter) {
  Process process(folder, "learner", *log);
  answer(1, 10);
  wait_until([&] { return process.file.rounds() == 10; });
  client->call({"DEL", "olrank:rounds"});
  const std::string id = lists->open(list_of(11), 5);
  EXPECT_EQ(round_of_retried(*lists, id, 11), 11U);
  // The learner tells of it after the counter is back.
  wait_until([&] { return warnings.count("olrank:rounds, was missing. Restored it to 10") == 1; });
  EXPECT_FALSE(log->fault().has_value());
}

/// An earlier version appends without the hash, and a new chain begins after its records.
TEST_F(ArchiveTest, RecordsOfEarlierVersionsAreArchived) {
  const auto append_as_before = [&](int number) {
    FeedbackRecord record = liked_first_feature(number);
    const std::string round = fmt::format("{}-0", client->call({"INCR", "olrank:rounds"}).number);
    client->call({"XADD", "olrank:log", round, "record", record_body(record)});
  };
  append_as_before(1);
  for (int start = 0; start < 2; ++start) {
    Process process(folder, "learner", *log);
    answer_list(*lists, 10 * start + 2);
    append_as_before(10 * start + 3);
    append_as_before(10 * start + 4);
    answer_list(*lists, 10 * start + 5);
    answer_list(*lists, 10 * start + 6);
    wait_until([&] { return process.file.rounds() == 6U + 5U * start; });
    wait_for_round(process.learner, 6 + 5 * start);
  }
  EXPECT_FALSE(log->fault().has_value());
  // A standby that comes later compares all of it.
  Process standby(folder, "standby", *log);
  wait_until([&] { return standby.file.rounds() == 11; });
  EXPECT_TRUE(warnings.messages().empty());
}

TEST_F(RedisTest, AStartWaitsForAServerThatBlinks) {
  server->kill();
  std::thread starter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    server->start();
  });
  int waits = 0;
  client->wait_with([&waits](const std::string&) {
    ++waits;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  EXPECT_EQ(client->call({"PING"}).text, "PONG");
  starter.join();
  EXPECT_GT(waits, 0);
  EXPECT_FALSE(client->is_away());
}

/// WAIT would hold up an event that comes too late.
TEST_F(RedisTest, NothingFollowsAScriptThatDidNothing) {
  const std::vector<RedisClient::Command> wait = {{"WAIT", "1", "10"}};
  EXPECT_EQ(client->run("return {}", {}, {}, wait).size(), 1U);
  EXPECT_EQ(client->run("return {1}", {}, {}, wait).size(), 2U);
}

/// Learners archive the same stream to the same bytes and the same state; each publishes what it knows.
TEST_F(ArchiveTest, TwoLearnersArchiveAndLearnTheSame) {
  RedisClient second_client(server->settings());
  RedisLog second_log(second_client, {});
  second_log.begin(some_settings(), false);
  {
    Process first(folder, "first", *log);
    answer(1, 20);
    wait_for_round(first.learner, 20);
    Process second(folder, "second", second_log);
    answer(21, 40);
    wait_for_round(first.learner, 40);
    wait_for_round(second.learner, 40);
    EXPECT_EQ(first.learner.state().fingerprint, second.learner.state().fingerprint);
    wait_until([&] { return log->model_round() == 40; });
    first.archive.require_running();
  }
  EXPECT_EQ(read_file(folder / "first.log"), read_file(folder / "second.log"));
  EXPECT_FALSE(read_file(folder / "first.log").empty());
  EXPECT_TRUE(warnings.messages().empty());
}

TEST_F(RedisTest, TheStreamIsCutBehindWhatEveryLearnerHasArchived) {
  for (int round = 1; round <= 400; ++round)
    client->call({"XADD", "olrank:log", fmt::format("{}-0", round), "record", "x"});
  client->call({"SET", "olrank:rounds", "400"});
  const auto first = [&] {
    const RedisReply range = client->call({"XRANGE", "olrank:log", "-", "+", "COUNT", "1"});
    return std::stoi(range.items[0].items[0].text);
  };
  constexpr std::int64_t kDay = 86'400'000;
  EXPECT_LT(std::abs(log->server_milliseconds() - utc_milliseconds()), 60'000);  // on the same machine
  log->trim("slow", {100}, 10, 2 * kDay);
  log->trim("fast", {390}, 10, 2 * kDay);
  EXPECT_LE(first(), 91);                      // whole blocks of entries go
  log->trim("fast", {390}, 10, 3 * kDay + 1);  // the slow one was not seen for a day
  EXPECT_GT(first(), 91);
  EXPECT_LE(first(), 381);
}

TEST_F(RedisFaultTest, AServerThatMayLoseAnswersIsRefused) {
  log->require_durable();
  client->call({"CONFIG", "SET", "appendfsync", "everysec"});
  EXPECT_TRUE(contains(message_of<IoError>([&] { log->require_durable(); }), "Set 'appendfsync always'"));
  RedisLog(*client, {true, 0}).require_durable();
  client->call({"CONFIG", "SET", "appendfsync", "always"});
  client->call({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  EXPECT_TRUE(contains(message_of<IoError>([&] { log->require_durable(); }), "maxmemory-policy"));
  // Feedback that too few of the server's replicas have is not acknowledged, and a repeated request asks
  // again.
  RedisLog wanting(*client, {true, 1});
  RedisLists lists(wanting, {}, kStart);
  const std::string id = lists.open(list_of(1), 3);
  for (int time = 0; time < 2; ++time)
    EXPECT_TRUE(
        contains(message_of<IoError>([&] { lists.add(id, clicks, {}); }), "0 of the server's 1 replica"));
}

/// The documents of a process of the prefix: with a folder those of a learner.
struct Documents {
  explicit Documents(const RedisServer& server, const std::filesystem::path& folder = {},
                     const std::string& schema = "schema", std::chrono::milliseconds patience = kNever)
      : client(server.settings()), log(client, {}), shared(log), store([&] {
          if (!folder.empty()) std::filesystem::create_directories(folder);
          DocumentStore::Settings settings{folder, schema, R"({"kind":"none","features":1})"};
          settings.shared = &shared;
          settings.patience = patience;
          return settings;
        }()) {}

  static constexpr std::chrono::hours kNever{24};
  std::int64_t put(const std::string& id, float value, std::int64_t version = 0) {
    return store.put({stored_document(id, version, {value})}).front();
  }
  /// "a 2 0.5, b 1 3": what has been taken so far.
  std::string known(const std::vector<std::string>& ids) const {
    std::string text;
    for (const std::string& id : ids) {
      const auto one = store.newest(id);
      text += one ? fmt::format("{} {} {}, ", id, one->version, one->columns[0]) : id + " -, ";
    }
    return text;
  }

  RedisClient client;
  RedisLog log;
  RedisDocuments shared;
  DocumentStore store;
};

std::string text_of_lines(const std::filesystem::path& folder) {
  return read_file(folder / DocumentVersions::kFile);
}

TEST_F(RedisTest, DocumentsAreThoseOfAllProcesses) {
  Documents one(*server);
  Documents other(*server);
  EXPECT_EQ(one.put("a", 0.5F), 1);
  EXPECT_EQ(other.put("a", 2.0F), 2);  // has caught up before it counted
  EXPECT_EQ(one.known({"a"}), "a 1 0.5, ");
  EXPECT_EQ(one.put("a", 0.5F), 3);  // not what it still has
  EXPECT_EQ(status_of([&] { other.put("a", 7.0F, 2); }), 409);
  other.put("b", 3.0F, 9);
  EXPECT_EQ(one.store.remove(std::vector<std::string>{"b", "none"}), 1);
  one.store.put({stored_document("c", 0, {1.0F}), stored_document(",\"more\":7", 0, {2.0F})});
  Documents late(*server);
  other.store.catch_up();
  for (const Documents* process : {&one, &other, &late}) {
    EXPECT_EQ(process->known({"a", "b", "c", ",\"more\":7"}), "a 3 0.5, b -, c 1 1, ,\"more\":7 1 2, ");
    EXPECT_EQ(process->store.counts().documents, 3);
  }
  EXPECT_EQ(late.put("b", 4.0F), 10);  // a deleted document keeps its versions
  Documents learner(*server, folder / "learner");
  learner.store.catch_up();
  EXPECT_EQ(learner.store.counts().versions, 7);
  for (const auto& [id, version, value] : {std::tuple{"a", 1, 0.5F}, {"a", 2, 2.0F}, {"b", 9, 3.0F}}) {
    FeedbackRecord record = liked_first_feature(1);
    record.docs = {{id, false}};
    record.clicks = {1};
    record.versions = {version};
    EXPECT_EQ(learner.store.apply(record), "");
    EXPECT_EQ(record.inputs, std::vector<float>{value});
  }
}

TEST_F(RedisTest, ProcessesThatStoreAtOnceGetVersionsInOneOrder) {
  std::optional<Documents> learner(std::in_place, *server, folder / "learner");
  Documents replica(*server);
  std::vector<std::int64_t> versions[2];
  const auto store = [](Documents& process, std::vector<std::int64_t>& got, float value) {
    for (int time = 0; time < 50; ++time) got.push_back(process.put("a", value + static_cast<float>(time)));
  };
  std::thread thread([&] { store(replica, versions[0], 0.0F); });
  store(*learner, versions[1], 1000.0F);
  thread.join();
  std::vector<std::int64_t> all = versions[0];
  all.insert(all.end(), versions[1].begin(), versions[1].end());
  std::sort(all.begin(), all.end());
  std::vector<std::int64_t> wanted(100);
  std::iota(wanted.begin(), wanted.end(), 1);
  EXPECT_EQ(all, wanted);
  learner->store.catch_up();
  replica.store.catch_up();
  EXPECT_EQ(learner->known({"a"}), replica.known({"a"}));
  learner.reset();
  Documents again(*server, folder / "learner");  // as after a kill
  again.store.catch_up();
  EXPECT_EQ(again.known({"a"}), replica.known({"a"}));
  Documents standby(*server, folder / "standby");
  standby.store.catch_up();
  EXPECT_EQ(text_of_lines(folder / "standby"), text_of_lines(folder / "learner"));
}

TEST_F(RedisFaultTest, DocumentsThatTheServerLostAreSentAgain) {
  std::optional<Documents> learner(std::in_place, *server, folder / "learner");
  Documents replica(*server);
  for (const char* id : {"a", "b", "c"}) learner->put(id, 1.0F);
  server->keep();
  for (const char* id : {"a", "d"}) learner->put(id, 2.0F);
  replica.store.catch_up();
  server->set_back();
  learner->client.probe();
  replica.client.probe();
  EXPECT_EQ(status_of([&] { replica.put("a", 3.0F); }), 503);
  EXPECT_EQ(replica.known({"a", "d"}), "a 2 2, d 1 2, ");
  learner->store.catch_up();
  EXPECT_EQ(warnings.count("sending it the others"), 1);
  EXPECT_EQ(replica.put("a", 3.0F), 3);
  EXPECT_EQ(Documents(*server).known({"a", "b", "d"}), "a 3 3, b 1 1, d 1 2, ");
  learner->store.catch_up();
  learner.reset();
  // Another prefix, such as a new server, gets all of them.
  server = std::make_unique<RedisServer>();
  Documents moved(*server, folder / "learner");
  moved.store.send_missing();
  EXPECT_EQ(Documents(*server).known({"a", "b", "d"}), "a 3 3, b 1 1, d 1 2, ");
  Documents standby(*server, folder / "standby");
  standby.store.catch_up();
  EXPECT_EQ(text_of_lines(folder / "standby"), text_of_lines(folder / "learner"));
}

TEST_F(RedisFaultTest, DocumentsWaitForALearnerToBegin) {
  { Documents(*server, folder / "learner").put("a", 1.0F); }
  server = std::make_unique<RedisServer>();  // which a learner has not reached yet
  Documents replica(*server);
  EXPECT_EQ(status_of([&] { replica.put("a", 3.0F); }), 503);
  Documents learner(*server, folder / "learner");
  learner.store.send_missing();
  learner.client.call({"SET", "olrank:rounds", "0"});
  EXPECT_EQ(replica.put("a", 3.0F), 2);
}

TEST_F(RedisFaultTest, ReplicasGiveUpDocumentsThatNoLearnerHas) {
  Documents replica(*server, {}, "schema", std::chrono::milliseconds(50));
  Documents patient(*server);
  replica.put("a", 1.0F);
  server->keep();
  replica.put("a", 2.0F);
  patient.store.catch_up();
  server->set_back();
  replica.client.probe();
  patient.client.probe();
  EXPECT_EQ(status_of([&] { replica.put("b", 3.0F); }), 503);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(status_of([&] { replica.put("b", 3.0F); }), 503);  // perhaps a learner starts that has them
  replica.log.trim("learner", {0, 2}, 5, replica.log.server_milliseconds() + 60'000);
  EXPECT_EQ(replica.put("b", 3.0F), 1);
  EXPECT_EQ(replica.known({"a", "b"}), "a 1 1, b 1 3, ");
  EXPECT_EQ(warnings.count("goes on without them"), 1);
  EXPECT_EQ(patient.known({"a"}), "a 2 2, ");
}

TEST_F(RedisFaultTest, DocumentsBehindThoseOfAnotherSchemaHaveThePresentOne) {
  { Documents(*server, folder / "learner").put("a", 1.0F); }
  server = std::make_unique<RedisServer>();
  Documents learner(*server, folder / "learner", "next");
  learner.store.send_missing();
  learner.store.send_missing();  // writes no second head
  EXPECT_EQ(learner.client.call({"XLEN", "olrank:documents"}).number, 3);
  learner.client.call({"SET", "olrank:rounds", "0"});
  EXPECT_EQ(Documents(*server, {}, "next").put("b", 2.0F), 1);
  learner.store.catch_up();
  for (const char* id : {"a", "b"}) {
    FeedbackRecord record = liked_first_feature(1);
    record.docs = {{id, false}};
    record.clicks = {1};
    record.versions = {1};
    EXPECT_EQ(learner.store.apply(record), "") << id;
  }
  EXPECT_EQ(text_of_lines(folder / "learner").find("\"schema\":\"next\"") != std::string::npos, true);
}

TEST_F(RedisTest, ALearnerKeepsALineThatIsNoDocumentOutOfItsLog) {
  Documents learner(*server, folder / "learner");
  learner.put("a", 1.0F);
  StoredDocument wide = stored_document("b", 1, {1.0F});
  wide.columns.push_back(2.0F);
  learner.shared.append(learner.shared.chain(), {{"b", document_body(wide, 0)}}, false);
  const std::string before = text_of_lines(folder / "learner");
  EXPECT_TRUE(contains(message_of<DataError>([&] { learner.store.catch_up(); }), "has 2 numbers"));
  EXPECT_EQ(text_of_lines(folder / "learner"), before);
}

TEST_F(RedisTest, TheNewestDocumentsAreThoseOfTheLastLines) {
  Documents replica(*server);
  replica.put("a", 1.0F);
  const RecordChain now = replica.shared.chain();
  const std::string newer = document_body(stored_document("a", 3, {9.0F}), 0);
  EXPECT_TRUE(replica.shared.set_newest(now, {{"a", newer}}));
  EXPECT_TRUE(replica.shared.set_newest(now, {{"a", document_body(stored_document("a", 2, {5.0F}), 0)}}));
  EXPECT_EQ(client->call({"HGET", "olrank:documents-newest", "a"}).text, newer);
  StoredDocument removed = stored_document("a", 3, {0.0F});
  removed.is_deleted = true;
  EXPECT_TRUE(replica.shared.set_newest(now, {{"a", document_body(removed, 0)}}));
  EXPECT_TRUE(replica.shared.set_newest(now, {{"a", newer}}));
  EXPECT_EQ(client->call({"HGET", "olrank:documents-newest", "a"}).text, document_body(removed, 0));
  replica.put("b", 1.0F);
  EXPECT_FALSE(replica.shared.set_newest(now, {{"a", newer}}));
}

TEST_F(RedisTest, OneRequestDoesNotHoldUpTheServer) {
  Documents replica(*server);
  std::vector<StoredDocument> many;
  for (int i = 0; i <= 20'000; ++i) many.push_back(stored_document(fmt::format("d{}", i), 0, {1.0F}));
  EXPECT_EQ(status_of([&] { replica.store.put(many); }), 413);
  many.pop_back();
  EXPECT_EQ(replica.store.put(many).size(), 20'000U);
}

TEST_F(RedisTest, ALearnerWithOtherDocumentsSaysSo) {
  {
    Documents learner(*server, folder / "learner");
    learner.put("a", 1.0F);
    server->keep();
    learner.put("a", 2.0F);
  }
  server->set_back();
  client->probe();
  Documents(*server).put("a", 5.0F);
  Documents learner(*server, folder / "learner");
  const std::string before = text_of_lines(folder / "learner");
  EXPECT_TRUE(
      contains(message_of<StateLost>([&] { learner.store.catch_up(); }), "has other documents than"));
  Documents(*server).put("b", 5.0F);
  EXPECT_TRUE(contains(message_of<StateLost>([&] { learner.store.catch_up(); }), "line 4 follows others"));
  EXPECT_EQ(text_of_lines(folder / "learner"), before);
}

TEST_F(RedisTest, ReplicasOutliveAStreamThatWasTrimmed) {
  Documents replica(*server);
  Documents other(*server);
  Documents learner(*server, folder / "learner");
  for (int time = 0; time < 300; ++time) other.put(fmt::format("d{}", time % 7), static_cast<float>(time));
  replica.log.trim("learner", {4, 301}, 5, 1);
  EXPECT_EQ(client->call({"XLEN", client->key("documents")}).number, 301);  // all records are there
  replica.log.trim("learner", {6, 301}, 5, 1);
  EXPECT_LT(client->call({"XLEN", client->key("documents")}).number, 200);
  replica.store.catch_up();
  EXPECT_EQ(replica.known({"d0", "d6"}), other.known({"d0", "d6"}));
  EXPECT_EQ(replica.put("d0", 0.5F), 44);
  EXPECT_TRUE(contains(message_of<StateLost>([&] { learner.store.catch_up(); }), "Copy documents*.jsonl*"));
}

}  // namespace
}  // namespace olrank
