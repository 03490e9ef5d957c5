#include "serve/feature_schema.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/runtime/log.h"
#include "serve/api_error.h"
#include "serve/requests.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

constexpr const char* kShop = R"(
drop = ["weight"]
[[feature]]
name = "price"
default = 20
clip = [0, 100]
log1p = true
was = ["cost"]
[[feature]]
name = "colour"
kind = "category"
values = ["red", "blue"]
was = ["tint"]
[[feature]]
name = "title"
kind = "text"
[[feature]]
name = "added"
kind = "time"
default = 365
[[feature]]
name = "wish"
kind = "vector"
length = 2
query = true
[[feature]]
name = "taste"
kind = "vector"
length = 2
input = false
[[feature]]
name = "half"
from = "match"
clip = [-1, 1]
[[feature]]
name = "match"
dot = ["wish", "taste"]
)";

using Names = std::vector<std::string>;
using Row = std::vector<float>;

TEST(FeatureSchema, NamesItsColumns) {
  const FeatureSchema schema = FeatureSchema::parse(kShop, "shop.toml");
  EXPECT_EQ(schema.columns(),
            (Names{"price", "colour=red", "colour=blue", "title", "added", "half", "match"}));
  const auto log21 = static_cast<float>(std::log1p(20.0));
  EXPECT_EQ(schema.columns_without_fields(), (Row{log21, 0, 0, 0, 365, 0, 0}));
}

TEST(FeatureSchema, ReadsItsOwnText) {
  const FeatureSchema schema = FeatureSchema::parse(kShop, "shop.toml");
  const FeatureSchema again = FeatureSchema::parse(schema.text(), "text");
  EXPECT_EQ(again.text(), schema.text());
  EXPECT_EQ(again.digest(), schema.digest());
  EXPECT_EQ(again.columns(), schema.columns());
  EXPECT_EQ(again.columns_without_fields(), schema.columns_without_fields());
}

TEST(FeatureSchema, KnowsEarlierNames) {
  const NamedInputs names = FeatureSchema::parse(kShop, "shop.toml").named_columns();
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
  const RequestLimits limits = limits_of(kShop);
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
  limits = limits_of(kShop);
  EXPECT_THROW(parse_rerank_request(body, limits, request), ApiError);
}

/// "status field: message" of the error.
std::string refusal_of(const std::string& features, const std::string& query = "{}") {
  const RequestLimits limits = limits_of(kShop);
  try {
    RankRequest request;
    parse_rank_request(R"({"query": "q", "query_features": )" + query +
                           R"(, "docs": [{"id": 1, "features": )" + features + "}]}",
                       limits, request);
  } catch (const ApiError& error) {
    return fmt::format("{} {}: {}", error.status(), error.field(), error.what());
  }
  return "none";
}

TEST(FeatureSchema, RefusesFieldsThatDoNotFit) {
  const std::string of_doc = "422 docs[0].features";
  EXPECT_EQ(refusal_of("{}"), "none");
  EXPECT_TRUE(refusal_of("[1, 2]").starts_with(of_doc + ": This service has a schema"));
  EXPECT_TRUE(
      refusal_of(R"({"prices": 1})").starts_with(of_doc + ".prices: The schema has no feature 'prices'"));
  EXPECT_TRUE(refusal_of(R"({"half": 1})").starts_with(of_doc + ".half: "));
  EXPECT_TRUE(refusal_of(R"({"wish": [1, 2]})").starts_with(of_doc + ".wish: "));
  EXPECT_EQ(refusal_of(R"({"price": 1, "price": 2})"), of_doc + ".price: The feature appears twice.");
  EXPECT_EQ(refusal_of(R"({"price": "1"})"),
            of_doc + ".price: Feature 'price' is a number and takes no text.");
  EXPECT_TRUE(refusal_of(R"({"price": 1e39})").starts_with(of_doc + ".price: The number is out of range"));
  EXPECT_TRUE(refusal_of(R"({"price": [1]})").starts_with(of_doc + ".price: Unexpected array"));
  EXPECT_TRUE(refusal_of(R"({"title": 7})").starts_with(of_doc + ".title: Feature 'title' is a text"));
  EXPECT_TRUE(refusal_of(R"({"added": "soon"})").starts_with(of_doc + ".added: A time must be"));
  EXPECT_EQ(refusal_of(R"({"taste": [1]})"),
            of_doc + ".taste: The vector has 1 number, but the schema gives 'taste' a length of 2.");
  EXPECT_EQ(
      refusal_of(R"({"taste": [1, 2, 3]})"),
      of_doc + ".taste[2]: The vector has at least 3 numbers, but the schema gives 'taste' a length of 2.");
  EXPECT_TRUE(refusal_of("{}", R"({"taste": [1, 2]})").starts_with("422 query_features.taste: "));
  EXPECT_TRUE(refusal_of("{}", R"({"wish": [1, "2"]})").starts_with("422 query_features.wish[1]: "));
  EXPECT_TRUE(refusal_of("{}", "[1]").starts_with("422 query_features: "));
  // Times have any number of milliseconds.
  EXPECT_EQ(refusal_of(R"({"added": -9223372036854775808})"), "none");
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
  RequestLimits limits = limits_of(kShop);
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
  const std::string a = "[[feature]]\nname = \"a\"\n";
  const std::string vector = "[[feature]]\nname = \"v\"\nkind = \"vector\"\nlength = 2\n";
  const std::string query = "[[feature]]\nname = \"q\"\nkind = \"vector\"\nlength = 3\nquery = true\n";
  const auto expect = [](const std::string& toml, const std::string& part) {
    const std::string message = wrong_schema(toml);
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with("s.toml")) << message;
  };
  expect("", "The schema has no feature");
  expect(a + a, "s.toml:3:1: The schema has the feature 'a' twice.");
  expect(a + "kinds = \"text\"\n", "kind");
  expect("drops = []\n" + a, "drop");
  expect("[feature]\nname = \"a\"\n", "[[feature]]");
  expect("[[feature]]\n", "no name");
  expect("[[feature]]\nname = \"a=b\"\n", "is no name");
  expect("[[feature]]\nname = \"17\"\n", "is no name");
  expect("[[feature]]\nname = \"a\"\nfrom = \"b\"\n[[feature]]\nname = \"b\"\nfrom = \"a\"\n",
         "Feature 'a' is computed from itself, by way of 'b'.");
  expect("[[feature]]\nname = \"a\"\nfrom = \"a\"\n", "computed from itself");
  expect("[[feature]]\nname = \"b\"\nfrom = \"a\"\n", "which the schema lacks");
  expect(a + "values = [\"x\"]\n", "only a category has");
  expect(a + "kind = \"category\"\n", "needs its values");
  expect(a + "kind = \"category\"\nvalues = [\"x\", \"x\"]\n", "the value 'x' twice");
  expect(a + "kind = \"category\"\nvalues = [\"x\"]\nlog1p = true\n", "do not fit a category");
  expect(a + "length = 3\n", "only a vector has");
  expect(a + "kind = \"vector\"\n", "needs its length");
  expect(a + "query = true\n", "only vectors may be");
  expect(a + "clip = [2, 1]\n", "the lowest and the highest");
  expect(vector + "clip = [0, 1]\n", "do not fit a vector");
  expect(a + vector + "[[feature]]\nname = \"b\"\nfrom = \"v\"\n", "has no single number");
  expect(vector + query + "[[feature]]\nname = \"d\"\ndot = [\"q\", \"v\"]\n",
         "needs vectors of one length, but 'q' has 3 numbers and 'v' 2");
  expect(vector + query + "[[feature]]\nname = \"d\"\ndot = [\"v\", \"q\"]\n",
         "a vector with query = true");
  expect(a + "from = \"a\"\ndefault = 1\n", "no default of its own");
  expect(query, "no feature that is an input");
  expect(a + "was = [\"b\"]\n[[feature]]\nname = \"b\"\n", "earlier name");
  expect(a + "was = [\"c\"]\n[[feature]]\nname = \"b\"\nwas = [\"c\"]\n",
         "s.toml:4:1: 'c' is an earlier name of 'a' and of 'b': it was one of them.");
  expect("drop = [\"a\"]\n" + a, "drop leaves it out");
  const std::string counter = a + "kind = \"counter\"\n";
  expect(counter, "of is click-rate, clicks, views or age.");
  expect(counter + "of = \"purchases\"\n", "Counter 'a' is of 'purchases', which a log does not tell");
  expect(a + "of = \"clicks\"\n", "Feature 'a' is no counter");
  expect(counter + "of = \"clicks\"\nby = \"user\"\n", "must be document or query, not 'user'");
  for (const char* wrong : {"0", "-1.5"})
    expect(counter + "of = \"views\"\nhalf_life = " + wrong, "must be a number of days above 0");
  for (const char* wrong : {"[-1, 2]", "[1, 0]", "[1]", "[1, 2, 3]"})
    expect(counter + "of = \"click-rate\"\nprior = " + wrong, "clicks of at least 0 and views above 0");
  expect(counter + "of = \"views\"\nhalf_life = inf\n", "must be a finite number");
  expect(counter + "of = \"click-rate\"\nprior = [1, inf]\n", "must be a list of finite numbers");
  expect(counter + "of = \"views\"\nprior = [1, 2]\n", "which only a click-rate has");
  expect(counter + "of = \"age\"\nhalf_life = 1\n", "is an age, which has no half_life");
  expect(counter + "of = \"age\"\nlimit = 0\n", "limit");
  expect(counter + "of = \"age\"\ndefault = 3\n", "has no default");
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
  try {
    rank(R"({"rate": 1})");
    FAIL();
  } catch (const ApiError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("The schema has no feature 'rate' that a document"));
  }
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
  EXPECT_NE(
      refused("[[feature]]\nname = \"a\"\n").find("The log has the feature 'b', which the schema lacks"),
      std::string::npos);
  EXPECT_NE(refused("drop = [\"c\"]\n[[feature]]\nname = \"a\"\n[[feature]]\nname = \"b\"\n")
                .find("'b' is computed in another way"),
            std::string::npos);
  // A feature that was left out once stays out, because the log still has it.
  const FeatureSchema without =
      FeatureSchema::parse("drop = [\"c\"]\n[[feature]]\nname = \"a\"\n", "before");
  EXPECT_NE(message_of<InvalidArgument>([&] {
              schema_change(without.columns(), &without,
                            FeatureSchema::parse("[[feature]]\nname = \"a\"\n", "after"));
            }).find("Earlier lists have the feature 'c', which was left out: keep it under drop"),
            std::string::npos);
}

}  // namespace
}  // namespace olrank
