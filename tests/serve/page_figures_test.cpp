#include "serve/page_figures.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "serve/metrics.h"

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

TEST(ClickCurveTest, HasTheMeansOfEqualPeriodsWithTheirBounds) {
  ClickCurve curve;
  for (int list = 0; list < 64; ++list) {
    const std::vector<std::uint8_t> clicks = {1, static_cast<std::uint8_t>(list % 4 == 0), 0};
    curve.count(list % 2 == 0 ? "learner" : "incumbent", clicks);
  }
  curve.count("learner", std::vector<std::uint8_t>{1});  // of a period that is not complete
  const auto periods = nlohmann::json::parse(curve.json());
  ASSERT_EQ(periods.size(), 2U);
  EXPECT_EQ(periods[1]["lists"], 64);
  const auto& learner = periods[0]["arms"]["learner"];
  EXPECT_EQ(learner["lists"], 16);
  EXPECT_EQ(learner["clicks"], 1.5);
  // Half of 16 lists have one click, and half two: the variance of a list is 16/15 of 1/4.
  const double half = 1.959964 * std::sqrt(0.25 * 16 / 15 / 16);
  EXPECT_NEAR(learner["low"].get<double>(), 1.5 - half, 1e-4);
  EXPECT_NEAR(learner["high"].get<double>(), 1.5 + half, 1e-4);
  EXPECT_EQ(periods[0]["arms"]["incumbent"]["high"], 1.0);
}

TEST(ClickCurveTest, KeepsEveryListInAtMost32Periods) {
  ClickCurve curve;
  for (int list = 0; list < 4096; ++list) curve.count("", std::vector<std::uint8_t>{list % 3 == 0});
  const auto periods = nlohmann::json::parse(curve.json());
  ASSERT_EQ(periods.size(), ClickCurve::kPeriods);
  double clicks = 0.0;
  for (const auto& period : periods)
    clicks += period["arms"][""]["clicks"].get<double>() * period["arms"][""]["lists"].get<double>();
  EXPECT_NEAR(clicks, 1366.0, 0.3);
  EXPECT_EQ(periods.back()["lists"], 4096);
}

TEST(AskedQueriesTest, TellsTheMostAskedThoughThereAreManyMore) {
  AskedQueries asked;
  const std::vector<DocId> docs = {{"a"}, {"7", true}, {"c"}};
  const std::vector<std::int32_t> best = {2, 0, 1};
  for (int list = 0; list < 20'000; ++list) {
    asked.count(list % 10 == 0 ? "often" : fmt::format("once {}", list), docs, best, {});
    if (list % 20 == 0) asked.count("less", docs, best, std::vector<std::int32_t>{0, 1, 2});
  }
  const auto queries = nlohmann::json::parse(asked.json());
  ASSERT_EQ(queries.size(), 2U);  // of all others most lists could be those of earlier ones
  EXPECT_EQ(queries[0]["query"], "often");
  EXPECT_NEAR(queries[0]["lists"].get<int>(), 2000, 21'000 / AskedQueries::kKept);
  EXPECT_LE(queries[0]["lists"].get<int>(), 2000);
  EXPECT_EQ(queries[1]["query"], "less");
  EXPECT_EQ(queries[1]["best"], nlohmann::json::parse(R"(["c", "a", 7])"));
  EXPECT_EQ(queries[1]["own"], nlohmann::json::parse(R"(["a", 7, "c"])"));
  EXPECT_TRUE(queries[0]["own"].is_null());
}

/// A linear model of raw features.
ModelScorer linear_model(std::vector<float> weights) {
  LoadedModel model;
  model.shape = linear_shape(std::ssize(weights));
  model.normaliser.features = std::ssize(weights);
  model.members = {std::move(weights)};
  return ModelScorer(std::move(model));
}

// A feature adds its weight times its value to a linear score, so that its effect is |w| times the
// deviation within lists.
TEST(FeatureEffectsTest, OfALinearModelAreWeightsTimesDeviations) {
  std::vector<float> weights(70, 0.0F);  // more than are scored at once
  weights[0] = 2.0F;
  weights[1] = 9.0F;  // of a feature that is the same for all documents of a list
  weights[69] = -1.0F;
  FeatureEffects effects;
  const ModelScorer model = linear_model(weights);
  EXPECT_TRUE(effects.of(model).empty());
  FeatureEffects::Clock::time_point now{};
  for (int list = 0; list < 20; ++list, now += FeatureEffects::kInterval) {
    std::vector<float> raw(4 * 70, 0.0F);
    for (int doc = 0; doc < 4; ++doc) {
      raw[doc * 70] = doc % 2 == 0 ? 1.0F : -1.0F;
      raw[doc * 70 + 1] = static_cast<float>(list);
      raw[doc * 70 + 69] = doc < 2 ? 6.0F : 0.0F;
    }
    effects.take({raw.data(), 4, 70}, now);
    effects.take({weights.data(), 1, 70}, now + FeatureEffects::kInterval);  // one document has no order
  }
  const std::vector<FeatureEffects::Effect> found = effects.of(model);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].feature, 69);
  EXPECT_NEAR(found[0].share, 3.0 / 5.0, 1e-6);
  EXPECT_NEAR(found[0].direction, -1.0, 1e-6);
  EXPECT_EQ(found[1].feature, 0);
  EXPECT_NEAR(found[1].direction, 1.0, 1e-6);
  EXPECT_TRUE(effects.of(linear_model({1.0F, 2.0F})).empty());  // of a model with other features
}

// A second of many requests costs one copy.
TEST(FeatureEffectsTest, TakeOneListASecond) {
  FeatureEffects effects;
  const std::vector<float> first = {1.0F, 0.0F, 0.0F, 0.0F};
  const std::vector<float> second = {0.0F, 1.0F, 0.0F, 0.0F};
  effects.take({first.data(), 2, 2}, {});
  effects.take({second.data(), 2, 2}, FeatureEffects::Clock::time_point() + FeatureEffects::kInterval / 2);
  const auto found = effects.of(linear_model({1.0F, 1.0F}));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].feature, 0);
}

TEST(MetricsTest, SummarisesLatenciesByRoute) {
  Metrics metrics;
  EXPECT_FALSE(metrics.certain_share());
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
