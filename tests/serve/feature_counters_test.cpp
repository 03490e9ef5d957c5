#include "serve/feature_counters.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace olrank {
namespace {

constexpr std::int64_t kHour = 3'600'000;
constexpr double kDay = 86'400'000.0;

constexpr const char* kCounters = R"(
[[feature]]
name = "rate"
kind = "counter"
of = "click-rate"
by = "query"
half_life = 2
prior = [1, 4]
[[feature]]
name = "clicks"
kind = "counter"
of = "clicks"
half_life = 2
[[feature]]
name = "views"
kind = "counter"
of = "views"
[[feature]]
name = "age"
kind = "counter"
of = "age"
)";

FeatureSchema schema_of(const std::string& toml) {
  return FeatureSchema::parse(toml, "shop.toml");
}

/// A list of three of six documents; some come earlier than the one before, as from windows.
FeedbackRecord list(std::uint32_t number) {
  FeedbackRecord record;
  record.query = fmt::format("q{}", number % 3);
  record.time = static_cast<std::int64_t>(number) * 5 * kHour + number * 7919 % 40 * kHour + 1;
  for (std::uint32_t doc = 0; doc < 3; ++doc) {
    record.docs.push_back({fmt::format("d{}", (number * 5 + doc) % 6), false});
    record.clicks.push_back((number * 2654435761U >> (8 + doc) & 1U) != 0 ? 1 : 0);
  }
  record.docs.push_back({"unshown", false});
  return record;
}

std::vector<float> read(const FeatureCounters& counters, const FeatureSchema& schema,
                        const std::string& query, const std::vector<DocId>& docs, std::int64_t time) {
  std::vector<float> rows;
  for (std::size_t doc = 0; doc < docs.size(); ++doc)
    rows.insert(rows.end(), schema.empty_row(false).begin(), schema.empty_row(false).end());
  counters.fill(query, docs, time, rows);
  return rows;
}

TEST(FeatureCounters, AreTheSumsOfAllListsBefore) {
  const FeatureSchema schema = schema_of(kCounters);
  FeatureCounters counters(schema);
  std::vector<FeedbackRecord> lists;
  const std::vector<DocId> docs = {{"d0", false}, {"d4", false}, {"unshown", false}};
  for (std::uint32_t number = 0; number < 60; ++number) {
    const std::int64_t now = static_cast<std::int64_t>(number) * 5 * kHour + 41 * kHour;
    const std::vector<float> rows = read(counters, schema, "q1", docs, now);
    for (std::size_t doc = 0; doc < docs.size(); ++doc) {
      double clicks = 0.0, views = 0.0, faded = 0.0, all = 0.0, age = 0.0;
      for (const FeedbackRecord& one : lists) {
        for (std::int64_t rank = 0; rank < one.shown(); ++rank) {
          if (one.docs[rank].text != docs[doc].text) continue;
          const auto days = static_cast<double>(now - one.time) / kDay;
          const double weight = std::exp2(-days / 2.0);
          if (one.query == "q1") clicks += weight * one.clicks[rank];
          if (one.query == "q1") views += weight;
          faded += weight * one.clicks[rank];
          all += 1.0;
          age = std::max(age, days);
        }
      }
      const double expected[] = {(clicks + 1.0) / (views + 4.0), faded, all, age};
      for (std::size_t place = 0; place < 4; ++place)
        EXPECT_NEAR(rows[doc * 4 + place], expected[place], 1e-6 * (1.0 + expected[place])) << number;
    }
    counters.observe(lists.emplace_back(list(number)));
  }
  EXPECT_EQ(counters.bytes(), (18 + 6 + 6) * FeatureCounters::kBytesOfEntry);
}

TEST(FeatureCounters, GoOnFromACheckpointToTheSameBits) {
  const FeatureSchema schema = schema_of(kCounters);
  FeatureCounters whole(schema), first(schema), rest(schema);
  const auto saved = [](const FeatureCounters& counters) {
    StateWriter state;
    counters.save(state);
    return state.bytes();
  };
  for (std::uint32_t number = 0; number < 40; ++number) whole.observe(list(number));
  for (std::uint32_t number = 0; number < 17; ++number) first.observe(list(number));
  StateReader state(saved(first), "checkpoint");
  rest.load(state);
  for (std::uint32_t number = 17; number < 40; ++number) rest.observe(list(number));
  EXPECT_EQ(saved(rest), saved(whole));
  EXPECT_NE(saved(first), saved(whole));
  // A replica loads the counters of each model over those of the one before.
  StateReader later(saved(whole), "model");
  first.load(later);
  EXPECT_EQ(saved(first), saved(whole));
}

TEST(FeatureCounters, ForgetWhatWasShownLeastRecently) {
  const FeatureSchema schema =
      schema_of("[[feature]]\nname = \"v\"\nkind = \"counter\"\nof = \"views\"\nlimit = 2\n");
  FeatureCounters counters(schema);
  for (const char* doc : {"a", "b", "a", "c"}) {
    FeedbackRecord record;
    record.time = 1;
    record.docs = {{doc, false}};
    record.clicks = {0};
    counters.observe(record);
  }
  EXPECT_EQ(read(counters, schema, "", {{"a", false}, {"b", false}, {"c", false}}, 1),
            (std::vector<float>{2.0F, 0.0F, 1.0F}));
}

TEST(FeatureCounters, TakeAListWithoutTimeForOneOfTheLatestTime) {
  const FeatureSchema schema = schema_of(kCounters);
  FeatureCounters known(schema), unknown(schema);
  FeedbackRecord last = list(3);
  last.time = list(2).time;
  for (FeatureCounters* one : {&known, &unknown}) {
    one->observe(list(2));
    one->observe(last);
    last.time = 0;
  }
  EXPECT_EQ(read(known, schema, "q0", last.docs, 500 * kHour),
            read(unknown, schema, "q0", last.docs, 500 * kHour));
}

}  // namespace
}  // namespace olrank
