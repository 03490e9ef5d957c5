#include "serve/event_window.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/api_refusal.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/mutated.h"

namespace olrank {
namespace {

using Event = ImpressionStore::Event;

/// A window of ten seconds; time is told, not measured.
struct Windowed {
  explicit Windowed(const std::string& types = "click=1,cart=3") { start(types); }

  void start(const std::string& types = "click=1,cart=3", std::size_t most = 100, bool starts_over = false,
             std::size_t bytes = 256'000'000) {
    window.reset();
    log.reset();
    log.emplace(folder / "feedback.jsonl", 10);
    EventWindow::Settings settings{
        std::chrono::seconds(10), EventTypes::parse(types), folder.path(), {}, {}, starts_over};
    settings.limits.open = most;
    settings.limits.bytes = bytes;
    settings.utc = [this] { return now + ahead; };
    settings.steady = [this] { return now; };
    window.emplace(std::move(settings), fmt::format("{:016x}", ++starts), *log);
  }
  std::string open(std::int64_t time) {
    FeedbackRecord list = liked_first_feature(1, 4);
    list.clicks.clear();
    now = time;
    list.time = now + ahead;
    return window->open(std::move(list), 3);
  }
  EventWindow::Outcome add(const std::string& id, std::span<const Event> events, std::int64_t time) {
    now = time;
    return window->add(id, {}, events);
  }
  std::vector<ImpressionStore::Closed> close_due(std::int64_t time) {
    now = time;
    return window->close_due();
  }
  std::vector<FeedbackRecord> logged() const { return records_of(*log); }
  std::size_t journals() const {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      files += entry.path().filename().string().starts_with("events-") ? 1 : 0;
    return files;
  }

  TemporaryFolder folder;
  std::int64_t now = 0;
  std::int64_t ahead = 0;  // of the steady clock is the other one
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

TEST(EventWindowTest, AListIsLoggedWhenItsWindowClosesWithEachEventOnce) {
  Windowed served;
  const std::string id = served.open(1000);
  const std::string unanswered = served.open(2000);
  EXPECT_FALSE(served.add(id, std::vector{click(2)}, 1500).duplicate);
  EXPECT_TRUE(served.add(id, std::vector{click(2)}, 1600).duplicate);
  const EventWindow::Outcome more = served.add(id, std::vector{click(2), cart("d1")}, 1700);
  EXPECT_FALSE(more.duplicate || more.late);
  EXPECT_EQ(more.clicks, (std::vector<std::uint8_t>{0, 1, 1}));
  EXPECT_TRUE(served.close_due(10'999).empty());
  EXPECT_EQ(served.log->rounds(), 0U);
  EXPECT_EQ(served.close_due(11'000).size(), 1U);
  EXPECT_EQ(served.close_due(12'000).size(), 1U);
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
  EXPECT_TRUE(served.add(id, std::vector{click(0)}, 11'000).late);
  served.close_due(11'000);
  EXPECT_TRUE(served.add(id, std::vector{click(1), cart("d2")}, 12'000).late);
  EXPECT_EQ(served.window->counts().late, 3U);
  EXPECT_EQ(served.logged().at(0).clicks, (std::vector<std::uint8_t>{0, 0, 0}));
  const std::string late = read_file(served.folder / "late.jsonl");
  EXPECT_EQ(std::count(late.begin(), late.end(), '\n'), 2);
  EXPECT_TRUE(contains(late, "\"events\":[[1,\"click\",12000],[\"d2\",\"cart\",12000]]"));
}

TEST(EventWindowTest, RefusesEventsThatAreNone) {
  Windowed served;
  const std::string id = served.open(1000);
  const auto refusal = [&](const std::string& impression, const Event& event) {
    return refusal_text([&] { served.add(impression, std::vector{click(0), event}, 2000); });
  };
  EXPECT_TRUE(contains(refusal(id, {{1, ""}, "purchase", 0}), "events[1].type"));
  EXPECT_TRUE(contains(refusal(id, click(3)), "ranks go from 0 to 2"));
  EXPECT_TRUE(contains(refusal(id, cart("d3")), "Document 'd3' was not shown"));
  EXPECT_TRUE(contains(refusal("nothing", click(0)), "Unknown impression"));
  EXPECT_EQ(served.add(id, {}, 2000).clicks, (std::vector<std::uint8_t>{0, 0, 0}));
  EXPECT_EQ(served.journals(), 0U);
}

TEST(EventWindowTest, ACrashLosesNoEventAndLogsNoListTwice) {
  Windowed served;
  const std::string closed = served.open(1000);
  served.add(closed, std::vector{click(0)}, 1100);
  served.close_due(11'000);
  const std::string open = served.open(12'000);
  served.add(open, std::vector{click(1)}, 12'100);
  served.add(open, std::vector{cart("d1")}, 12'200);
  served.open(12'500);  // without events: a crash forgets it
  served.start();
  EXPECT_EQ(served.window->counts().open, 1U);
  EXPECT_TRUE(served.add(open, std::vector{cart("d1")}, 13'000).duplicate);
  served.add(open, std::vector{click(2)}, 13'100);
  served.start();
  served.close_due(22'000);
  const std::vector<FeedbackRecord> logged = served.logged();
  ASSERT_EQ(logged.size(), 2U);
  EXPECT_EQ(logged[1].impression, open);
  EXPECT_EQ(logged[1].rewards, (std::vector<double>{0, 4, 1}));
  // The log has it, so that the journal's copy does not count again.
  served.start();
  EXPECT_EQ(served.window->counts().open, 0U);
  EXPECT_TRUE(served.add(open, std::vector{click(0)}, 23'000).late);
}

TEST(EventWindowTest, AFlippedBitOfTheJournalIsRefusedOrCostsItsOwnListAlone) {
  Windowed served;
  std::vector<std::string> ids;
  for (std::int64_t list = 0; list < 5; ++list) {
    ids.push_back(served.open(1000 + list));
    served.add(ids.back(), std::vector{click(1)}, 1100);
  }
  const std::filesystem::path file = served.folder / "events-000001.jsonl";
  const std::string journal = read_file(file);
  const ExpectedWarnings warnings;
  int refused = 0;
  for (std::uint32_t flip = 0; flip < 200; ++flip) {
    RngStream rng(make_key({.seed = 5, .purpose = Purpose::kProbe}), flip);
    served.window.reset();
    write_file_atomically(file, with_flipped_bit(journal, rng));
    try {
      served.start();
    } catch (const DataError&) {
      ++refused;
      continue;
    }
    const auto kept = std::count_if(ids.begin(), ids.end(), [&](const std::string& id) {
      try {
        return served.add(id, std::vector{click(1)}, 1200).duplicate;
      } catch (const ApiError&) {  // a list that is not known any more
        return false;
      }
    });
    EXPECT_GE(kept, 4) << flip;
  }
  EXPECT_GT(refused, 150);
}

TEST(EventWindowTest, AStopKeepsListsWithoutEventsToo) {
  Windowed served;
  const std::string second = served.open(2000);
  const std::string first = served.open(1000);
  served.add(second, std::vector{click(1)}, 2100);
  served.window->keep_open();
  served.start();
  EXPECT_EQ(served.close_due(60'000).size(), 2U);
  EXPECT_EQ(served.logged()[0].impression, first);
  EXPECT_EQ(served.logged()[1].impression, second);
  EXPECT_EQ(served.logged()[1].clicks, (std::vector<std::uint8_t>{0, 1, 0}));
}

TEST(EventWindowTest, AListThatIsShownWhileTheClockIsAheadHoldsNoOtherUp) {
  Windowed served;
  served.ahead = 3'600'000;
  const std::string ahead = served.open(1000);
  served.ahead = 0;
  const std::string after = served.open(2000);
  EXPECT_FALSE(served.add(ahead, std::vector{click(1)}, 3000).late);
  EXPECT_EQ(served.close_due(11'000).size(), 1U);
  EXPECT_EQ(served.close_due(12'000).size(), 1U);
  EXPECT_EQ(served.logged()[0].impression, ahead);
  EXPECT_EQ(served.logged()[1].impression, after);
  // A clock that goes back makes nothing late and closes nothing.
  const std::string back = served.open(20'000);
  served.ahead = -15'000;
  EXPECT_FALSE(served.add(back, std::vector{click(1)}, 29'000).late);
  EXPECT_TRUE(served.close_due(29'999).empty());
}

TEST(EventWindowTest, AfterARestartAListThatWasShownAheadOfTheClockWaitsOneWindowMore) {
  Windowed served;
  served.ahead = 3'600'000;
  served.add(served.open(1000), std::vector{click(1)}, 1500);
  served.ahead = 0;
  served.add(served.open(2000), std::vector{click(2)}, 2500);
  served.now = 4000;
  served.start();
  EXPECT_EQ(served.close_due(12'000).size(), 1U);
  EXPECT_EQ(served.close_due(14'000).size(), 1U);
}

TEST(EventWindowTest, AStartWithoutTheTypesOfAcknowledgedEventsIsRefused) {
  Windowed served("click=1,cart=3,buy=9");
  served.add(served.open(1000), std::vector{cart("d1")}, 1100);
  served.add(served.open(1200), std::vector{cart("d1"), click(2), Event{{0, ""}, "buy", 0}}, 1300);
  const std::string journal = read_file(served.folder / "events-000001.jsonl");
  for (const char* fewer : {"", "click=1", "view=2"}) {
    EXPECT_EQ(
        message_of<InvalidArgument>([&] { served.start(fewer); }),
        served.folder.path().string() +
            ": Lists whose window is open have acknowledged events of types that this start does not "
            "name: buy (1), cart (2). Give --window and --events as before; TYPE=0 keeps a type out of "
            "the rewards.");
  }
  EXPECT_EQ(read_file(served.folder / "events-000001.jsonl"), journal);
  // They are counted whatever their types.
  EventWindow::Settings counted{std::chrono::seconds(1), EventTypes(), served.folder.path(), {}, {}};
  counted.only_counts = true;
  EXPECT_EQ(EventWindow(counted, "0", *served.log).counts().open, 2U);
  served.start("click=1,cart=5,buy=0");
  EXPECT_EQ(served.close_due(12'000).size(), 2U);
  EXPECT_EQ(served.logged()[0].rewards, (std::vector<double>{0, 5, 0}));
  // Once all are in the log, their types are free again.
  served.start("click=1");
}

TEST(EventWindowTest, ADiskThatIsFullIsToldOnceAndCountsRequests) {
  Windowed served;
  const std::string id = served.open(1000);
  served.add(served.open(1000), std::vector{click(1)}, 1100);
  const ExpectedWarnings warnings;
  {
    const FullDisk full(10);
    for (int request = 0; request < 3; ++request)
      EXPECT_THROW(served.add(id, std::vector{click(1)}, 1200), LogFull);
    for (int turn = 0; turn < 50; ++turn) EXPECT_THROW(served.close_due(11'000), LogFull);
  }
  EXPECT_EQ(served.close_due(11'000).size(), 2U);
  EXPECT_FALSE(served.add(served.open(12'000), std::vector{click(1)}, 12'100).late);
  const std::vector<std::string> said = warnings.messages();
  ASSERT_EQ(said.size(), 4U);
  EXPECT_TRUE(contains(said[0], "events-000001.jsonl"));
  EXPECT_TRUE(contains(said[0], "Feedback is rejected until there is space; ranking continues."));
  EXPECT_TRUE(contains(said[1], "feedback.jsonl"));
  EXPECT_TRUE(contains(said[1], "Lists whose window has closed wait for the disk; ranking continues."));
  EXPECT_TRUE(contains(said[2], "feedback.jsonl: Lists whose window has closed are logged again."));
  EXPECT_TRUE(contains(said[3], "Feedback is accepted again; 3 were rejected.")) << said[3];
  // At the end of the process, the words are in the exception.
  served.open(13'000);
  const FullDisk full(10);
  const std::string lost = message_of<IoError>([&] { served.window->keep_open(); });
  EXPECT_TRUE(contains(lost, "1 list without events, whose window was open, could not be kept."));
  EXPECT_EQ(warnings.messages().size(), 4U);
}

TEST(EventWindowTest, AReturnToAnEarlierRoundSetsTheJournalAside) {
  Windowed served;
  served.add(served.open(1000), std::vector{click(1)}, 1100);
  served.start("click=1", 100, true);
  EXPECT_EQ(served.window->counts().open, 0U);
  EXPECT_TRUE(std::filesystem::exists(served.folder / "events-000001.jsonl.set-aside"));
}

TEST(EventWindowTest, TheOldestCloseEarlyWhenThereAreTooMany) {
  Windowed served;
  served.start("click=1", 2);
  std::vector<std::string> ids;
  const ExpectedWarnings warnings;
  for (int list = 0; list < 5; ++list) ids.push_back(served.open(1000 + list));
  EXPECT_EQ(served.close_due(2000).size(), 3U);
  EXPECT_EQ(served.logged()[2].impression, ids[2]);
  EXPECT_EQ(served.window->counts().open, 2U);
  EXPECT_EQ(served.window->counts().dropped, 3U);
  EXPECT_EQ(served.window->counts().early, 3U);
  ASSERT_EQ(warnings.messages().size(), 1U);
  EXPECT_EQ(
      warnings.messages()[0].find("Lists are logged after 1 s of the 10 s of --window, because newer ones "
                                  "need the place: later events are not learned. At 5 lists a second of "),
      0U)
      << warnings.messages()[0];
  EXPECT_TRUE(contains(warnings.messages()[0], "needs --max-impressions 50 and --max-impression-memory "))
      << warnings.messages()[0];
  // Some lists later it is said again, not with each.
  for (int list = 0; list < 20; ++list) {
    served.open(2100 + list);
    served.close_due(2100 + list);
  }
  EXPECT_EQ(served.window->counts().early, 23U);
  EXPECT_EQ(warnings.messages().size(), 2U);
}

TEST(EventWindowTest, AFullDiskCountsAListThatClosesEarlyOnce) {
  Windowed served;
  served.start("click=1", 2);
  const ExpectedWarnings warnings;
  for (int list = 0; list < 3; ++list) served.open(1000 + list);
  {
    const FullDisk full(10);
    for (int turn = 0; turn < 5; ++turn) EXPECT_THROW(served.close_due(2000), LogFull);
  }
  EXPECT_EQ(served.window->counts().early, 0U);
  EXPECT_EQ(served.close_due(2000).size(), 1U);
  EXPECT_EQ(served.window->counts().early, 1U);
}

TEST(EventWindowTest, SaysBeforeListsCloseEarlyThatTheyWill) {
  Windowed served;
  const std::size_t bytes = [&served] {
    served.open(1000);
    return served.window->counts().bytes;
  }();
  served.start("click=1", 1000, false, 40 * bytes);
  const ExpectedWarnings warnings;
  // Ten lists a second need the memory of a hundred; a quarter of the limit is taken after one second.
  for (int list = 0; list < 15; ++list) {
    served.open(1000 + 100 * list);
    served.close_due(1000 + 100 * list);
  }
  ASSERT_EQ(warnings.messages().size(), 1U);
  EXPECT_EQ(
      warnings.messages()[0].find("If lists stay as many as now, they will be logged before the 10 s of "
                                  "--window have ended"),
      0U)
      << warnings.messages()[0];
  EXPECT_EQ(served.window->counts().early, 0U);
  // One list a second fits.
  Windowed slow;
  slow.start("click=1", 1000, false, 40 * bytes);
  for (int list = 0; list < 30; ++list) {
    slow.open(1000 + 1000 * list);
    slow.close_due(1000 + 1000 * list);
  }
  EXPECT_EQ(warnings.messages().size(), 1U);
}

TEST(EventWindowTest, AnOpenListTakesLittleMoreThanItsInputs) {
  const auto bytes_of = [](std::int64_t docs, std::int64_t features) {
    Windowed served;
    FeedbackRecord list;
    list.query = "red shoes";
    list.columns = features;
    list.has_unshown = true;
    list.explored = true;
    for (std::int64_t doc = 0; doc < docs; ++doc) list.docs.push_back({fmt::format("product-{:010}", doc)});
    list.incumbent = list.docs;
    list.propensity.assign(10, 0.5);
    list.inputs.assign(docs * features, 0.5F);
    list.time = 1000;
    const FeedbackRecord shown = list;
    served.window->open(std::move(list), 10);
    const std::size_t bytes = served.window->counts().bytes;
    served.close_due(20'000);
    FeedbackRecord logged = served.logged().at(0);
    EXPECT_EQ(logged.docs, shown.docs);
    EXPECT_EQ(logged.incumbent, shown.incumbent);
    EXPECT_EQ(logged.inputs, shown.inputs);
    EXPECT_EQ(logged.propensity, shown.propensity);
    return static_cast<std::int64_t>(bytes);
  };
  EXPECT_LT(bytes_of(20, 20), 4500);
  EXPECT_LT(bytes_of(100, 70), 35'000);
}

}  // namespace
}  // namespace olrank
