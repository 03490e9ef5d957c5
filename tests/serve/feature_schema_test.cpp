#include "serve/feature_schema.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/runtime/log.h"
#include "serve/api_error.h"
#include "serve/open_lists.h"
#include "serve/requests.h"
#include "tests/support/api_refusal.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

std::string shop() {
  return read_file("tests/serve/shop.toml");
}

using Names = std::vector<std::string>;
using Row = std::vector<float>;

TEST(FeatureSchema, NamesItsColumns) {
  const FeatureSchema schema = FeatureSchema::parse(shop(), "shop.toml");
  EXPECT_EQ(schema.columns(),
            (Names{"price", "colour=red", "colour=blue", "title", "added", "half", "match"}));
  const auto log21 = static_cast<float>(std::log1p(20.0));
  EXPECT_EQ(schema.columns_without_fields(), (Row{log21, 0, 0, 0, 365, 0, 0}));
}

TEST(FeatureSchema, ReadsItsOwnText) {
  const FeatureSchema schema = FeatureSchema::parse(shop(), "shop.toml");
  const FeatureSchema again = FeatureSchema::parse(schema.text(), "text");
  EXPECT_EQ(again.text(), schema.text());
  EXPECT_EQ(again.digest(), schema.digest());
  EXPECT_EQ(again.columns(), schema.columns());
  EXPECT_EQ(again.columns_without_fields(), schema.columns_without_fields());
}

TEST(FeatureSchema, KnowsEarlierNames) {
  const NamedInputs names = FeatureSchema::parse(shop(), "shop.toml").named_columns();
  EXPECT_EQ(names.present_name("cost"), "price");
  EXPECT_EQ(names.present_name("tint=red"), "colour=red");
  EXPECT_EQ(names.present_name("title"), "title");
  EXPECT_TRUE(names.drops("weight"));
}

RequestLimits limits_of(const std::string& toml) {
  RequestLimits limits;
  limits.schema = std::make_shared<const FeatureSchema>(FeatureSchema::parse(toml, "shop.toml"));
  limits.features = std::ssize(limits.schema->columns());
  return limits;
}

TEST(FeatureSchema, ComputesWhatRequestsSend) {
  const RequestLimits limits = limits_of(shop());
  const std::int64_t yesterday = utc_milliseconds() - 86'400'000;
  RankRequest request;
  parse_rank_request(R"({"query": "q", "docs": [
      {"id": 1, "features": {"price": 1000, "colour": "blue", "title": "Füße", "added": )" +
                         std::to_string(yesterday) + R"(, "taste": [1, -2.5]}},
      {"id": 2, "features": {"price": 0, "colour": "never seen", "taste": [0.25, 0]}},
      {"id": 3, "features": {}}], "query_features": {"wish": [2, 1]}})",
                     limits, request);
  ASSERT_EQ(request.values.size(), 21U);
  const auto row = [&request](int doc) {
    return Row(request.values.begin() + doc * 7, request.values.begin() + (doc + 1) * 7);
  };
  const auto log101 = static_cast<float>(std::log1p(100.0));
  const float age = row(0)[4];
  EXPECT_NEAR(age, 1.0F, 0.01F);
  EXPECT_EQ(row(0), (Row{log101, 0, 1, 4, age, -0.5F, -0.5F}));
  EXPECT_EQ(row(1), (Row{0, 0, 0, 0, 365, 0.5F, 0.5F}));
  EXPECT_EQ(row(2), limits.schema->columns_without_fields());
  // A time may be a text, and the next request begins with nothing of this one.
  parse_rank_request(
      R"({"query": "q", "docs": [{"id": 1, "features": {"added": "1970-01-01T00:00:00Z", "taste": [1, 1]}}]})",
      limits, request);
  ASSERT_EQ(request.values.size(), 7U);
  EXPECT_GT(request.values[4], 20'000.0F);
  EXPECT_EQ(request.values[6], 0.0F);
}

TEST(FeatureSchema, TakesSearchResponsesIfAllFeaturesAreNumbersOrCounters) {
  RequestLimits limits =
      limits_of("[[feature]]\nname = \"title\"\n[[feature]]\nname = \"likes\"\nlog1p = true\n");
  limits.names = {{"title", 0}, {"likes", 1}};
  const std::string body =
      R"({"query": "q", "response": {"hits": {"hits": [{"_id": "1", "fields": {"_ltrlog": [{"log": [
          {"name": "likes", "value": 1}, {"name": "title", "value": 2.5}]}]}}]}}})";
  RankRequest request;
  parse_rerank_request(body, limits, request);
  EXPECT_EQ(request.values, (Row{2.5F, static_cast<float>(std::log1p(1.0))}));
  // A hit has no counters, which come from the log.
  limits = limits_of(
      "[[feature]]\nname = \"title\"\n[[feature]]\nname = \"rate\"\nkind = \"counter\"\nof = "
      "\"click-rate\"\n"
      "prior = [1, 4]\n[[feature]]\nname = \"likes\"\n");
  limits.names = {{"title", 0}, {"rate", 1}, {"likes", 2}};
  FeatureCounters counters(*limits.schema);
  limits.counters = &counters;
  parse_rerank_request(body, limits, request);
  EXPECT_EQ(request.values, (Row{2.5F, 0.25F, 1.0F}));
  FeedbackRecord clicked;
  clicked.query = "q";
  clicked.docs = {{"1", false}};
  clicked.clicks = {1};
  clicked.time = utc_milliseconds();
  counters.observe(clicked);
  parse_rerank_request(body, limits, request);
  EXPECT_EQ(request.values, (Row{2.5F, 0.4F, 1.0F}));
  const std::string counted =
      R"({"query": "q", "response": {"hits": {"hits": [{"_id": "1", "fields": {"_ltrlog": [{"log": [
          {"name": "rate", "value": 1}]}]}}]}}})";
  EXPECT_THROW(parse_rerank_request(counted, limits, request), ApiError);
  limits = limits_of(shop());
  EXPECT_THROW(parse_rerank_request(body, limits, request), ApiError);
}

std::string refused_fields(const std::string& features, const std::string& query = "{}") {
  RankRequest request;
  return refusal_text([&] {
    parse_rank_request(R"({"query": "q", "query_features": )" + query +
                           R"(, "docs": [{"id": 1, "features": )" + features + "}]}",
                       limits_of(shop()), request);
  });
}

TEST(FeatureSchema, RefusesFieldsThatDoNotFit) {
  expect_cases("serve/refusals.txt", "fields of a document",
               [](const std::string& fields) { return refused_fields(fields); });
  expect_cases("serve/refusals.txt", "fields of a query",
               [](const std::string& fields) { return refused_fields("{}", fields); });
}

TEST(FeatureSchema, TakesRequestsInTheFormOfTheOtherSchema) {
  const std::string other = R"(
drop = ["title", "added", "taste", "wish"]
[[feature]]
name = "cost"
was = ["price"]
[[feature]]
name = "stock"
kind = "vector"
length = 2
)";
  RequestLimits limits = limits_of(shop());
  limits.other_schema = [next = limits_of(other).schema] { return next; };
  RankRequest request;
  const auto rank = [&](const std::string& features) {
    parse_rank_request(R"({"query": "q", "docs": [{"id": 1, "features": )" + features +
                           R"(}], "query_features": {"wish": [1, 1]}})",
                       limits, request);
    return request.values[0];
  };
  const auto log8 = static_cast<float>(std::log1p(7.0));
  EXPECT_EQ(rank(R"({"stock": [[{"a": null}], "x", true, 2.5], "price": 7})"), log8);
  EXPECT_EQ(rank(R"({"tint": "red", "weight": {"grams": 3}, "price": 7})"), log8);
  EXPECT_THROW(rank(R"({"stocks": 7})"), ApiError);
  // "cost" is a name of price in both schemas.
  EXPECT_EQ(rank(R"({"cost": 7})"), log8);
  EXPECT_THROW(rank(R"({"cost": 7, "price": 7})"), ApiError);
}

TEST(FeatureSchema, BoundsTheColumnsOfAllDocuments) {
  RequestLimits limits =
      limits_of("[[feature]]\nname = \"c\"\nkind = \"category\"\nvalues = [\"a\", \"b\", \"c\"]\n");
  limits.values = 6;
  const auto docs = [&limits](int count) {
    std::string body = R"({"query": "q", "docs": [)";
    for (int doc = 0; doc < count; ++doc)
      body += fmt::format("{}{{\"id\": {}, \"features\": {{}}}}", doc > 0 ? "," : "", doc);
    RankRequest request;
    parse_rank_request(body + "]}", limits, request);
  };
  EXPECT_NO_THROW(docs(2));
  EXPECT_THROW(docs(3), ApiError);
}

std::string wrong_schema(const std::string& toml) {
  return message_of<InvalidArgument>([&] { FeatureSchema::parse(toml, "s.toml"); });
}

TEST(FeatureSchema, RefusesWhatIsNoSchema) {
  expect_cases("serve/refusals.txt", "schema", wrong_schema);
}

TEST(FeatureSchema, FillsItsCountersIn) {
  const std::string price = "[[feature]]\nname = \"price\"\n";
  const std::string rate = "[[feature]]\nname = \"rate\"\nkind = \"counter\"\nof = \"click-rate\"\n";
  RequestLimits limits = limits_of(rate + "input = false\n" + price +
                                   "[[feature]]\nname = \"doubt\"\nfrom = \"rate\"\nclip = [0, 0.5]\n");
  FeatureCounters counters(*limits.schema);
  limits.counters = &counters;
  FeedbackRecord record;
  record.docs = {{"1", true}};
  record.clicks = {1};
  for (int view = 0; view < 90; ++view) counters.observe(record);
  RankRequest request;
  const auto rank = [&](const std::string& features) {
    parse_rank_request(R"({"query": "q", "docs": [{"id": 1, "features": )" + features +
                           R"(}, {"id": "2", "features": {}}]})",
                       limits, request);
  };
  rank(R"({"price": 7})");
  EXPECT_EQ(request.values, (Row{7.0F, 0.5F, 0.0F, 0.1F}));
  EXPECT_EQ(request.fields[0], 91.0F / 100.0F);
  EXPECT_TRUE(contains(refusal_text([&] { rank(R"({"rate": 1})"); }),
                       "The schema has no feature 'rate' that a document"));
  EXPECT_TRUE(FeatureSchema::parse(price + rate, "s").takes_numbers());
  EXPECT_EQ(FeatureSchema::parse(rate, "s").fields_json({0.5F}, {}), "{}");
}

TEST(FeatureSchema, SaysHowItChanges) {
  const FeatureSchema before = FeatureSchema::parse(
      "[[feature]]\nname = \"a\"\n[[feature]]\nname = \"b\"\nlog1p = true\n[[feature]]\nname = \"c\"\n",
      "before");
  const auto change = [&before](const std::string& toml) {
    return schema_change(before.columns(), &before, FeatureSchema::parse(toml, "after"));
  };
  EXPECT_EQ(change("drop = [\"c\"]\n[[feature]]\nname = \"n\"\n[[feature]]\nname = \"a\"\n"
                   "[[feature]]\nname = \"bb\"\nlog1p = true\nwas = [\"b\"]\n"),
            "adds n, renames b to bb, drops c");
  EXPECT_EQ(change(before.text() + "default = 2\n"), "keeps its columns");
  // A feature may go on as the source of another one alone.
  EXPECT_EQ(change("drop = [\"c\"]\n[[feature]]\nname = \"d\"\nfrom = \"c\"\n" + before.text() +
                   "input = false\n"),
            "adds d, drops c");
  const auto refused = [&](const std::string& toml) {
    return message_of<InvalidArgument>([&] { change(toml); });
  };
  EXPECT_TRUE(contains(refused("[[feature]]\nname = \"a\"\n"),
                       "The log has the feature 'b', which the schema lacks"));
  EXPECT_TRUE(contains(refused("drop = [\"c\"]\n[[feature]]\nname = \"a\"\n[[feature]]\nname = \"b\"\n"),
                       "'b' is computed in another way"));
  // A feature that was left out once stays out, because the log still has it.
  const FeatureSchema without =
      FeatureSchema::parse("drop = [\"c\"]\n[[feature]]\nname = \"a\"\n", "before");
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] {
                         schema_change(without.columns(), &without,
                                       FeatureSchema::parse("[[feature]]\nname = \"a\"\n", "after"));
                       }),
                       "Earlier lists have the feature 'c', which was left out: keep it under drop"));
}

}  // namespace
}  // namespace olrank
