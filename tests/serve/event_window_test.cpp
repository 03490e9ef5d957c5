#include "serve/event_window.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "serve/api_error.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

using Event = ImpressionStore::Event;

/// A window of ten seconds; time is told, not measured.
struct Windowed {
  explicit Windowed(const std::string& types = "click=1,cart=3") { start(types); }

  void start(const std::string& types = "click=1,cart=3", std::size_t most = 100,
             bool starts_over = false) {
    window.reset();
    log.reset();
    log.emplace(folder / "feedback.jsonl", 10);
    EventWindow::Settings settings{
        std::chrono::seconds(10), EventTypes::parse(types), folder.path(), {}, {}, starts_over};
    settings.limits.open = most;
    window.emplace(std::move(settings), fmt::format("{:016x}", ++starts), *log);
  }
  std::string open(std::int64_t time) {
    FeedbackRecord list = liked_first_feature(1, 4);
    list.clicks.clear();
    list.time = time;
    return window->open(std::move(list), 3);
  }
  std::vector<FeedbackRecord> logged() const {
    std::vector<FeedbackRecord> records;
    FileLog::Reader reader(*log, 0);
    FeedbackRecord record;
    for (std::string_view line; reader.next(line);) {
      EXPECT_FALSE(parse_record(line, record));
      records.push_back(record);
    }
    return records;
  }
  std::size_t journals() const {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      files += entry.path().filename().string().starts_with("events-") ? 1 : 0;
    return files;
  }

  TemporaryFolder folder;
  int starts = 0;
  std::optional<FileLog> log;
  std::optional<EventWindow> window;
};

Event click(std::int64_t rank) {
  return {{rank, ""}, "click", 0};
}
Event cart(const std::string& doc) {
  return {{-1, doc}, "cart", 0};
}

TEST(EventTypesTest, ReadsTypesWithTheirWeights) {
  const EventTypes types = EventTypes::parse("purchase=10,view=0");
  EXPECT_EQ(types.names, (std::vector<std::string>{"purchase", "view", "click"}));
  EXPECT_EQ(types.weights, (std::vector<double>{10, 0, 1}));
  EXPECT_EQ(types.index("cart"), -1);
}

TEST(EventTypesTest, RefusesOthers) {
  const auto refusal = [](std::string_view text) {
    return message_of<InvalidArgument>([&] { EventTypes::parse(text); });
  };
  EXPECT_EQ(refusal("cart=-1"), "--events cart: The weight must be from 0 to 1000000, not -1.");
  EXPECT_EQ(refusal("cart=nan"), "--events cart: The weight must be from 0 to 1000000, not nan.");
  EXPECT_EQ(refusal("cart"), "--events: 'cart' must be TYPE=WEIGHT, as in click=1,cart=3.");
  EXPECT_EQ(refusal("a b=1"), "--events: 'a b=1' must be TYPE=WEIGHT, as in click=1,cart=3.");
  EXPECT_EQ(refusal("cart=1,cart=2"), "--events: The type 'cart' appears twice.");
}

TEST(EventWindowTest, AListIsLoggedWhenItsWindowClosesWithEachEventOnce) {
  Windowed served;
  const std::string id = served.open(1000);
  const std::string unanswered = served.open(2000);
  EXPECT_FALSE(served.window->add(id, std::vector{click(2)}, 1500).duplicate);
  EXPECT_TRUE(served.window->add(id, std::vector{click(2)}, 1600).duplicate);
  const EventWindow::Outcome more = served.window->add(id, std::vector{click(2), cart("d1")}, 1700);
  EXPECT_FALSE(more.duplicate || more.late);
  EXPECT_EQ(more.clicks, (std::vector<std::uint8_t>{0, 1, 1}));
  EXPECT_TRUE(served.window->close_due(10'999).empty());
  EXPECT_EQ(served.log->rounds(), 0U);
  EXPECT_EQ(served.window->close_due(11'000).size(), 1U);
  EXPECT_EQ(served.window->close_due(12'000).size(), 1U);
  const std::vector<FeedbackRecord> logged = served.logged();
  ASSERT_EQ(logged.size(), 2U);
  EXPECT_EQ(logged[0].impression, id);
  EXPECT_EQ(logged[0].clicks, (std::vector<std::uint8_t>{0, 1, 1}));
  EXPECT_EQ(logged[0].rewards, (std::vector<double>{0, 3, 1}));
  EXPECT_EQ(logged[0].docs.size(), 4U);
  EXPECT_EQ(logged[1].impression, unanswered);
  EXPECT_EQ(logged[1].clicks, (std::vector<std::uint8_t>{0, 0, 0}));
  EXPECT_TRUE(logged[1].rewards.empty());
  EXPECT_EQ(served.window->counts().open, 0U);
  EXPECT_EQ(served.window->counts().bytes, 0U);
}

TEST(EventWindowTest, LateEventsAreKeptAndCounted) {
  Windowed served;
  const std::string id = served.open(1000);
  // Its window is over, though the list is not logged yet.
  EXPECT_TRUE(served.window->add(id, std::vector{click(0)}, 11'000).late);
  served.window->close_due(11'000);
  EXPECT_TRUE(served.window->add(id, std::vector{click(1), cart("d2")}, 12'000).late);
  EXPECT_EQ(served.window->counts().late, 3U);
  EXPECT_EQ(served.logged().at(0).clicks, (std::vector<std::uint8_t>{0, 0, 0}));
  const std::string late = read_file(served.folder / "late.jsonl");
  EXPECT_EQ(std::count(late.begin(), late.end(), '\n'), 2);
  EXPECT_NE(late.find("\"events\":[[1,\"click\",12000],[\"d2\",\"cart\",12000]]"), late.npos) << late;
}

TEST(EventWindowTest, RefusesEventsThatAreNone) {
  Windowed served;
  const std::string id = served.open(1000);
  const auto refusal = [&](const std::string& impression, const Event& event) {
    try {
      served.window->add(impression, std::vector{click(0), event}, 2000);
    } catch (const ApiError& error) {
      return error.json();
    }
    return std::string();
  };
  EXPECT_NE(refusal(id, {{1, ""}, "purchase", 0}).find("events[1].type"), std::string::npos);
  EXPECT_NE(refusal(id, click(3)).find("ranks go from 0 to 2"), std::string::npos);
  EXPECT_NE(refusal(id, cart("d3")).find("Document 'd3' was not shown"), std::string::npos);
  EXPECT_NE(refusal("nothing", click(0)).find("Unknown impression"), std::string::npos);
  EXPECT_EQ(served.window->add(id, {}, 2000).clicks, (std::vector<std::uint8_t>{0, 0, 0}));
  EXPECT_EQ(served.journals(), 0U);
}

TEST(EventWindowTest, ACrashLosesNoEventAndLogsNoListTwice) {
  Windowed served;
  const std::string closed = served.open(1000);
  served.window->add(closed, std::vector{click(0)}, 1100);
  served.window->close_due(11'000);
  const std::string open = served.open(12'000);
  served.window->add(open, std::vector{click(1)}, 12'100);
  served.window->add(open, std::vector{cart("d1")}, 12'200);
  served.open(12'500);  // without events: a crash forgets it
  served.start();
  EXPECT_EQ(served.window->counts().open, 1U);
  EXPECT_TRUE(served.window->add(open, std::vector{cart("d1")}, 13'000).duplicate);
  served.window->add(open, std::vector{click(2)}, 13'100);
  served.start();
  served.window->close_due(22'000);
  const std::vector<FeedbackRecord> logged = served.logged();
  ASSERT_EQ(logged.size(), 2U);
  EXPECT_EQ(logged[1].impression, open);
  EXPECT_EQ(logged[1].rewards, (std::vector<double>{0, 4, 1}));
  // The log has it, so that the journal's copy does not count again.
  served.start();
  EXPECT_EQ(served.window->counts().open, 0U);
  EXPECT_TRUE(served.window->add(open, std::vector{click(0)}, 23'000).late);
}

TEST(EventWindowTest, AStopKeepsListsWithoutEventsToo) {
  Windowed served;
  const std::string second = served.open(2000);
  const std::string first = served.open(1000);
  served.window->add(second, std::vector{click(1)}, 2100);
  served.window->keep_open();
  served.start();
  EXPECT_EQ(served.window->close_due(60'000).size(), 2U);
  EXPECT_EQ(served.logged()[0].impression, first);
  EXPECT_EQ(served.logged()[1].impression, second);
  EXPECT_EQ(served.logged()[1].clicks, (std::vector<std::uint8_t>{0, 1, 0}));
}

TEST(EventWindowTest, AReturnToAnEarlierRoundSetsTheJournalAside) {
  Windowed served;
  served.window->add(served.open(1000), std::vector{click(1)}, 1100);
  served.start("click=1", 100, true);
  EXPECT_EQ(served.window->counts().open, 0U);
  EXPECT_TRUE(std::filesystem::exists(served.folder / "events-000001.jsonl.set-aside"));
}

TEST(EventWindowTest, TheOldestCloseEarlyWhenThereAreTooMany) {
  Windowed served;
  served.start("click=1", 2);
  std::vector<std::string> ids;
  for (int list = 0; list < 5; ++list) ids.push_back(served.open(1000 + list));
  EXPECT_EQ(served.window->close_due(2000).size(), 3U);
  EXPECT_EQ(served.logged()[2].impression, ids[2]);
  EXPECT_EQ(served.window->counts().open, 2U);
  EXPECT_EQ(served.window->counts().dropped, 3U);
}

}  // namespace
}  // namespace olrank
