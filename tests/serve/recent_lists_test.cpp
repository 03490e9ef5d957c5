#include "serve/metrics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace olrank {
namespace {

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
