#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "serve/api_error.h"
#include "serve/requests.h"
#include "serve/search_response.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

const RequestLimits kLimits{3, 2, 10, 8};

/// "status field" of the error.
template <class Parse>
std::string error_of(const Parse& parse) {
  try {
    parse();
  } catch (const ApiError& error) {
    return std::to_string(error.status()) + " " + error.field();
  }
  return "none";
}

std::string rank_error(const std::string& body) {
  return error_of([&] {
    RankRequest request;
    parse_rank_request(body, kLimits, request);
  });
}

std::string feedback_error(const std::string& body) {
  return error_of([&] { parse_feedback_request(body, kLimits); });
}

TEST(RankRequest, AcceptsFeaturesAsArrayOrObject) {
  RankRequest request;
  parse_rank_request(
      R"({"docs": [{"id": "a", "features": [1, -2.5]}, {"features": {"2": 3e2}, "id": 7}, {"id": "7b", "features": {}}],
          "explore": false, "certainty": true, "query": "q", "k": 4})",
      kLimits, request);
  EXPECT_EQ(request.query, "q");
  EXPECT_EQ(request.docs, (std::vector<DocId>{{"a", false}, {"7", true}, {"7b", false}}));
  EXPECT_EQ(request.values, (std::vector<float>{1.0F, -2.5F, 0.0F, 300.0F, 0.0F, 0.0F}));
  EXPECT_EQ(request.cutoff, 4);
  EXPECT_FALSE(request.explore);
  EXPECT_TRUE(request.certainty);
  parse_rank_request(R"({"query": 12, "docs": [{"id": "a", "features": [1, 2]}]})", kLimits, request);
  EXPECT_EQ(request.query, "12");
  EXPECT_EQ(request.values.size(), 2U);
  EXPECT_EQ(request.cutoff, 10);
  EXPECT_TRUE(request.explore);
  EXPECT_FALSE(request.certainty);
}

TEST(RankRequest, ErrorsNameTheField) {
  expect_cases("serve/requests_test.txt", "rank", rank_error);
  EXPECT_EQ(rank_error(std::string(100000, '[')), "422 body");
  EXPECT_EQ(rank_error(R"({"query": )" + std::string(100000, '[') + "}"), "422 query");
}

TEST(RankRequest, UnknownNamesBringANearOneOrTheFields) {
  RequestLimits limits = kLimits;
  limits.names = {{"title", 0}, {"description", 1}};
  const auto message = [&](const std::string& body) {
    RankRequest request;
    return message_of<ApiError>([&] { parse_rank_request(body, limits, request); });
  };
  const std::string fields =
      "Unknown field. The fields are query, docs, k, explore, user, certainty, incumbent and "
      "allow_unknown.";
  for (const char* name : {"documents", "items", "q", "kk", ""})
    EXPECT_EQ(message(fmt::format("{{\"{}\": 1}}", name)), fields) << name;
  EXPECT_EQ(message(R"({"qury": "q"})"), "Unknown field. Did you mean 'query'?");
  EXPECT_EQ(message(R"({"K": 1})"), "Unknown field. Did you mean 'k'?");
  const auto of_feature = [&](const char* name) {
    return message(
        fmt::format(R"({{"query": "q", "docs": [{{"id": "a", "features": {{"{}": 1}}}}]}})", name));
  };
  EXPECT_EQ(of_feature("descripton"),
            "This service has no feature 'descripton'. Did you mean 'description'?");
  EXPECT_EQ(of_feature("price"), "This service has no feature 'price'.");
  EXPECT_EQ(of_feature("3"), "Feature numbers go from 1 to 2.");
  limits.names.clear();
  EXPECT_EQ(of_feature("title"), "Feature numbers go from 1 to 2.");
}

TEST(RankRequest, ErrorsNameFeaturesByName) {
  RequestLimits limits = kLimits;
  limits.names = {{"title", 0}, {"price", 1}};
  const auto refusal = [&](const std::string& features) {
    RankRequest request;
    try {
      parse_rank_request(R"({"query": "q", "docs": [{"id": "a", "features": )" + features + "}]}", limits,
                         request);
    } catch (const ApiError& error) {
      return fmt::format("{}: {}", error.field(), error.what());
    }
    return std::string("accepted");
  };
  for (const char* features : {R"([1, "x"])", R"({"price": "x"})", R"({"2": "x"})"})
    EXPECT_EQ(refusal(features), "docs[0].features.price: Unexpected string here.") << features;
  EXPECT_EQ(refusal("[1, 1e39]"), "docs[0].features.price: The number is out of range for a 32-bit float.");
  EXPECT_EQ(
      refusal("[1]"),
      "docs[0].features: The document has 1 features, but the model expects 2; it ends before 'price'.");
  EXPECT_EQ(refusal(R"({"price": 1, "2": 1})"), "docs[0].features.2: The feature 'price' appears twice.");
  EXPECT_EQ(refusal("[1, 2, true]"), "docs[0].features[2]: Unexpected boolean here.");
  limits.names.clear();
  EXPECT_EQ(refusal(R"([1, "x"])"), "docs[0].features[1]: Unexpected string here.");
}

TEST(RankRequest, TakesAGroupPerDocument) {
  RequestLimits limits = kLimits;
  limits.groups = 2;
  limits.most_ranks = 12;
  RankRequest request;
  const auto error = [&](const std::string& first, const std::string& rest = "") {
    return error_of([&] {
      parse_rank_request(
          R"({"query": "q", "docs": [{"id": "a", "features": [1, 2])" + first + "}]" + rest + "}", limits,
          request);
    });
  };
  parse_rank_request(
      R"({"docs": [{"id": 1, "group": "B", "features": [1, 2]}, {"id": 2, "features": {}, "group": "A"}], "query": "q"})",
      limits, request);
  EXPECT_EQ(request.groups, (std::vector<DocGroup>{DocGroup::kB, DocGroup::kA}));
  EXPECT_EQ(error(R"(, "group": "A")", R"(, "k": 12)"), "none");
  EXPECT_EQ(request.groups, std::vector<DocGroup>{DocGroup::kA});
  EXPECT_EQ(error(R"(, "group": "A")", R"(, "k": 13)"), "422 k");
  EXPECT_EQ(error(""), "422 docs[0].group");
  for (const char* value : {R"("C")", R"("a")", R"("AB")", R"("")", "1", "null", "true", "[]", "{}"})
    EXPECT_EQ(error(std::string(R"(, "group": )") + value), "422 docs[0].group") << value;
  EXPECT_EQ(error(R"(, "group": "A", "group": "A")"), "422 docs[0].group");
  EXPECT_EQ(error(R"(, "group": "A", "grup": "A")"), "422 docs[0].grup");
  limits.groups = 3;
  EXPECT_EQ(error(R"(, "group": "C")"), "none");
  EXPECT_EQ(index_of(request.groups.at(0)), 2U);
  EXPECT_EQ(error(R"(, "group": "D")"), "422 docs[0].group");
  limits.groups = 0;
  EXPECT_EQ(error(R"(, "group": "A")"), "422 docs[0].group");
  EXPECT_EQ(error(""), "none");
  EXPECT_TRUE(request.groups.empty());
}

TEST(RankRequest, TakesTheOrderOfAnIncumbent) {
  const auto body = [](const std::string& incumbent) {
    return R"({"query": "q", "docs": [{"id": "a", "features": [1, 2]}, {"id": 7, "features": [1, 2]}], "incumbent": )" +
           incumbent + "}";
  };
  RankRequest request;
  // An ID is that of its document, whether it was a number or a text.
  parse_rank_request(body(R"(["7", "a"])"), kLimits, request);
  EXPECT_EQ(request.incumbent, (std::vector<DocId>{{"7", true}, {"a", false}}));
  EXPECT_EQ(rank_error(body(R"([7, "b"])")), "422 incumbent[1]");
  EXPECT_EQ(rank_error(body(R"([7, 7])")), "422 incumbent[1]");
  EXPECT_EQ(rank_error(body("[7]")), "422 incumbent");
  EXPECT_EQ(rank_error(body("[]")), "422 incumbent");
  EXPECT_EQ(rank_error(body("[7.5]")), "422 incumbent[0]");
  EXPECT_EQ(rank_error(body("true")), "422 incumbent");
}

TEST(RankRequest, EnforcesTheDocumentLimit) {
  std::string docs;
  for (int doc = 0; doc < 4; ++doc)
    docs +=
        (doc > 0 ? "," : "") + std::string(R"({"features": [1, 2], "id": )") + std::to_string(doc) + "}";
  EXPECT_EQ(rank_error(R"({"query": "q", "docs": [)" + docs + "]}"), "413 docs[3]");
}

// A sparse document of a few bytes has as many features in memory as a full one.
TEST(RankRequest, LimitsTheFeaturesOfAllDocuments) {
  RequestLimits limits;
  limits.features = 1000;
  limits.values = 2500;
  const auto parse = [&](int docs) {
    std::string body;
    for (int doc = 0; doc < docs; ++doc)
      body += fmt::format("{}{{\"id\":{},\"features\":{{}}}}", doc > 0 ? "," : "", doc);
    RankRequest request;
    parse_rank_request("{\"query\":\"q\",\"docs\":[" + body + "]}", limits, request);
    return request.values.size();
  };
  EXPECT_EQ(parse(2), 2000U);
  try {
    parse(3);
    ADD_FAILURE() << "accepted";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 413);
    EXPECT_EQ(error.field(), "docs[2].features");
  }
}

TEST(FeedbackRequest, AcceptsRanksAndIds) {
  const FeedbackRequest request =
      parse_feedback_request(R"({"clicks": [0, "b", 2], "impression": "i-1"})", kLimits);
  EXPECT_EQ(request.impression, "i-1");
  ASSERT_EQ(request.clicks.size(), 3U);
  EXPECT_EQ(request.clicks[0].rank, 0);
  EXPECT_EQ(request.clicks[1].rank, -1);
  EXPECT_EQ(request.clicks[1].doc, "b");
}

TEST(FeedbackRequest, NamedListsSayWhatIntegersAre) {
  const auto clicks = [](const std::string& list) {
    return parse_feedback_request(R"({"impression": "i", )" + list + "}", kLimits).clicks;
  };
  const auto ids = clicks(R"("ids": [7, "b"])");
  ASSERT_EQ(ids.size(), 2U);
  EXPECT_EQ(ids[0].rank, -1);
  EXPECT_EQ(ids[0].doc, "7");
  EXPECT_EQ(ids[1].doc, "b");
  const auto ranks = clicks(R"("ranks": [2])");
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].rank, 2);
  EXPECT_EQ(ranks[0].list, "ranks");
  EXPECT_TRUE(clicks(R"("ids": [])").empty());
}

TEST(FeedbackRequest, ErrorsNameTheField) {
  expect_cases("serve/requests_test.txt", "feedback", feedback_error);
}

const RequestLimits kUnnamed{3, 2, 10, 16};

RequestLimits named_limits() {
  RequestLimits limits = kUnnamed;
  limits.names = {{"title", 0}, {"body", 1}};
  return limits;
}

/// A hit with the entries of its log.
std::string hit(const std::string& id, const std::string& log) {
  return R"({"_index": "shop", "_id": ")" + id +
         R"(", "_score": 1.5, "_source": {"name": [null, {"hits": 1}]},
             "fields": {"price": [3], "_ltrlog": [{"log": [)" +
         log + "]}]}}";
}

std::string request_of(const std::string& hits, const std::string& more = R"("query": "q")") {
  return "{" + more +
         R"(, "response": {"took": 5, "timed_out": false, "_shards": {"failures": [[]]}, "hits":
            {"total": {"value": 2, "relation": "eq"}, "max_score": null, "hits": [)" +
         hits + R"(]}, "aggregations": {"hits": {"hits": ["x"]}}}})";
}

/// "status field: message" of the error.
std::string error_of(const std::string& body, const RequestLimits& limits) {
  RankRequest request;
  try {
    parse_rerank_request(body, limits, request);
  } catch (const ApiError& error) {
    return std::to_string(error.status()) + " " + error.field() + ": " + error.what();
  }
  return "none";
}

constexpr const char* kTitleEntry = R"({"name": "title", "value": 1.5})";
constexpr const char* kBodyEntry = R"({"value": -2, "name": "body"})";
const std::string kBothEntries = std::string(kTitleEntry) + "," + kBodyEntry;

TEST(RerankRequest, TakesTheHitsAsDocumentsInTheOrderOfTheEngine) {
  RankRequest request;
  const std::string body = request_of(
      hit("b", kBothEntries) + "," + hit("a", R"({"name": "body"}, {"name": "title", "value": 3})"),
      R"("user": 7, "explore": false, "certainty": true, "query": "q", "k": 4)");
  parse_rerank_request(body, named_limits(), request);
  EXPECT_EQ(request.query, "q");
  EXPECT_EQ(request.user, "7");
  EXPECT_EQ(request.cutoff, 4);
  EXPECT_FALSE(request.explore);
  EXPECT_TRUE(request.certainty);
  EXPECT_EQ(request.docs, (std::vector<DocId>{{"b", false}, {"a", false}}));
  EXPECT_EQ(request.values, (std::vector<float>{1.5F, -2.0F, 3.0F, 0.0F}));
  EXPECT_EQ(request.incumbent, request.docs);
  EXPECT_EQ(request.incumbent_docs, (std::vector<std::int32_t>{0, 1}));
  // Without names of the service's features the first hit decides the order, here the same one.
  RankRequest unnamed;
  parse_rerank_request(body, kUnnamed, unnamed);
  EXPECT_EQ(unnamed.values, request.values);
}

TEST(RerankRequest, ReadsTheSameFeaturesAsARankRequestWithTheirNames) {
  RankRequest rank;
  parse_rank_request(R"({"query": "q", "docs": [{"id": "b", "features": {"body": -2, "title": 1.5}}]})",
                     named_limits(), rank);
  RankRequest rerank;
  parse_rerank_request(
      request_of(hit("b", kBothEntries + R"(, {"name": "extra_logging", "value": {"deep": [{}]}})")),
      named_limits(), rerank);
  EXPECT_EQ(rerank.values, rank.values);
}

RequestLimits limits_with(const std::vector<std::string>& origins) {
  RequestLimits limits = {3, 5, 10, 16};
  limits.names = {{"title", 0}, {"bm25", 1}, {"price", 2}, {"sold", 3}, {"new", 4}};
  limits.origins = parse_hit_origins(origins, limits.names);
  return limits;
}
const std::vector<std::string> kOrigins = {"bm25=_score", "price=_source.cost.net", "sold=fields.sold?",
                                           "new=matched:new"};

TEST(RerankRequest, ReadsNumbersAndMatchedQueriesOfAHitAsFeatures) {
  const std::string log = R"("_ltrlog": [{"log": [{"name": "title", "value": 2}]}])";
  const auto values = [&](const std::string& hits, const std::vector<std::string>& origins = kOrigins) {
    RankRequest request;
    parse_rerank_request(request_of(hits), limits_with(origins), request);
    return request.values;
  };
  EXPECT_EQ(values(R"({"fields": {"sold": [4], )" + log +
                   R"(}, "_score": 1.5, "_id": "a", "matched_queries": ["old", "new"],
                       "_source": {"price": "9", "cost": {"net": 3, "gross": [{"net": 7}]}}})"),
            (std::vector<float>{2, 1.5, 3, 4, 1}));
  // Without the optional number, without a matched query, and with an object of their scores.
  EXPECT_EQ(
      values(R"({"_id": "a", "fields": {)" + log + R"(}, "_source": {"cost.net": true}, "_score": 0.5},
                      {"_id": "b", "_source": {"cost": {"net": [8]}}, "matched_queries": {"new": 0.3}, "_score": 1, "fields": {)" +
             log + "}}"),
      (std::vector<float>{2, 0.5, 1, 0, 0, 2, 1, 8, 0, 1}));
  // A service whose features all come from the hit needs no feature log.
  std::vector<std::string> all = kOrigins;
  all.emplace_back("title=_source.length");
  EXPECT_EQ(values(R"({"_id": "a", "_score": 1, "_source": {"length": 6, "cost": {"net": 2}}})", all),
            (std::vector<float>{6, 1, 2, 0, 0}));
}

TEST(RerankRequest, RefusesHitsWithoutTheOriginOfAFeature) {
  const std::string log = R"("fields": {"_ltrlog": [{"log": [{"name": "title", "value": 2}]}]}, )";
  const std::string at = "response.hits.hits[0]";
  const std::pair<std::string, std::string> cases[] = {
      {R"("_score": 1)",
       ": The hit has no number '_source.cost.net', which is the feature 'price': have the search request "
       "bring it, or write "
       "price=_source.cost.net? if 0 stands for it."},
      {R"("_source": {"cost": {"net": 1}}, "_score": null)",
       ": The hit has no number '_score', which is the feature 'bm25': have the search request bring it, "
       "or write "
       "bm25=_score? if 0 stands for it."},
      {R"("_source": {"cost": {"net": [1, 2]}})",
       ": The hit has several values of '_source.cost.net'; a feature is one number."},
      {R"("_source": {"cost": {"net": "1"}})",
       "._source.cost.net: The value is a string; a feature is a number."},
      {R"("_score": 1e60, "_source": {"cost": {"net": 1}})",
       "._score: The number is out of range for a 32-bit float."},
  };
  for (const auto& [part, sentence] : cases)
    EXPECT_EQ(error_of(request_of("{" + log + part + R"(, "_id": "a"})"), limits_with(kOrigins)),
              "422 " + at + sentence);
  EXPECT_EQ(
      error_of(request_of(hit("a", R"({"name": "bm25", "value": 2})")), limits_with(kOrigins)),
      "422 " + at +
          ".fields._ltrlog[0].log: Feature 'bm25' has another origin in --feature-names, or is a counter.");
  EXPECT_EQ(error_of(request_of(hit("a", "")), limits_with(kOrigins)),
            "422 " + at +
                ".fields._ltrlog[0].log: The log has 0 of the 1 features that the model expects; it lacks "
                "'title'.");
  // A hit's own keys do not stand for places, and queries that match twice match.
  RankRequest request;
  parse_rerank_request(
      request_of(R"({"_id": "a", "_score": 1, "matched:new": 7, "_source.cost.net": 9, "fields": null,
                                      "_source": {"cost": {"net": 2}, "matched_queries": ["new"]}, "matched_queries": ["old", "old"]},
                                     {"_id": "b", "_score": 1, "_source": {"cost": {"net": 2}}, "matched_queries": ["new", "new"]})"),
      limits_with({"bm25=_score", "price=_source.cost.net", "new=matched:new", "title=_source.t?",
                   "sold=_source.s?"}),
      request);
  EXPECT_EQ(request.values, (std::vector<float>{0, 1, 2, 0, 0, 0, 1, 2, 0, 1}));
  EXPECT_EQ(find_origin("colour=red=_source.red"), 10U);
  EXPECT_EQ(find_origin("colour=red"), std::string_view::npos);
  for (const std::string origin :
       {"price=fields._ltrlog", "price=score", "price=", "price=_source.", "price=matched:", "price=?"})
    EXPECT_THROW(limits_with({origin}), InvalidArgument) << origin;
  EXPECT_THROW(limits_with({"price=_score", "sold=_score?"}), InvalidArgument);
}

TEST(RerankRequest, ErrorsNameTheFieldInOneSentence) {
  const std::string at = "response.hits.hits[0].fields._ltrlog";
  const std::string log = at + "[0].log";
  const std::pair<std::string, std::string> cases[] = {
      {"[]", "422 body: Unexpected array here."},
      {R"({"query": "q"})", "422 response: The field is missing."},
      {R"({"query": "q", "docs": []})",
       "422 docs: Unknown field. The fields are query, response, k, explore, user and certainty."},
      {R"({"query": "q", "response": []})", "422 response: Unexpected array here."},
      {R"({"query": "q", "response": "x"})", "422 response: Unexpected string here."},
      {R"({"query": "q", "response": null})",
       "422 response: null is not allowed; omit the field or give it a value."},
      {R"({"query": {"a": 1}, "response": {}})", "422 query: Unexpected object here."},
      {R"({"query": "q", "response": {"error": {"type": "x"}, "status": 400}})",
       "422 response.hits.hits: The field is missing."},
      {request_of(hit("a", kBothEntries), R"("k": 2)"), "422 query: The field is missing."},
      {request_of("7"), "422 response.hits.hits[0]: Unexpected number here."},
      {request_of(R"({"_id": "a", "_source": {}})"),
       "422 " + at + ": The hit has no feature log: add ext.ltr_log to the search request."},
      {request_of(R"({"_id": "a", "fields": {"price": [1]}})"),
       "422 " + at + ": The hit has no feature log: add ext.ltr_log to the search request."},
      {request_of(R"({"_id": "a", "fields": {"_ltrlog": [{"one": [)" + kBothEntries +
                  R"(], "two": []}]}})"),
       "422 " + at + "[0].one: The hit has two feature logs, 'one' and 'two': ask for one."},
      {request_of(R"({"fields": {"_ltrlog": [{"log": [)" + kBothEntries + "]}]}}"),
       "422 response.hits.hits[0]._id: The field is missing."},
      {request_of(hit("a", kBothEntries) + "," + hit("a", kBothEntries)),
       "422 response.hits.hits[1]._id: Document 'a' appears twice."},
      {request_of(hit("a", kTitleEntry)),
       "422 " + log + ": The log has 1 of the 2 features that the model expects; it lacks 'body'."},
      {request_of(hit("a", kBothEntries + "," + kTitleEntry)),
       "422 " + log + ": Feature 'title' is logged twice."},
      {request_of(hit("a", kBothEntries + R"(, {"name": "price"})")),
       "422 " + log + ": This service has no feature 'price'."},
      {request_of(hit("a", kBothEntries + R"(, {"name": "titel"})")),
       "422 " + log + ": This service has no feature 'titel'. Did you mean 'title'?"},
      {request_of(hit("a", kBothEntries + R"(, {"value": 1})")),
       "422 " + log + "[2].name: The field is missing."},
      {request_of(hit("a", R"({"name": 3})")), "422 " + log + "[0].name: Unexpected number here."},
      {request_of(hit("a", R"({"name": "title", "value": "NaN"})")),
       "422 " + log + "[0].value: Unexpected string here."},
      {request_of(hit("a", R"({"name": "title", "value": null})")),
       "422 " + log + "[0].value: null is not allowed; omit the field or give it a value."},
      {request_of(hit("a", R"({"name": "title", "value": [1]})")),
       "422 " + log + "[0].value: Unexpected array here."},
      {request_of(hit("a", R"({"name": "title", "value": {"a": 1}})")),
       "422 " + log + ": Feature 'title' has an object as its value."},
      {request_of(hit("a", std::string(kBodyEntry) + R"(, {"name": "title", "value": 1e39})")),
       "422 " + at + ".title: The number is out of range for a 32-bit float."},
  };
  for (const auto& [body, expected] : cases) EXPECT_EQ(error_of(body, named_limits()), expected) << body;
  EXPECT_TRUE(error_of(request_of(hit("a", kBothEntries)) + "x", kUnnamed).starts_with("400 "));
  EXPECT_TRUE(error_of(R"({"query": "q", "response": {"took": tru)", kUnnamed).starts_with("400 response"));
}

TEST(RerankRequest, TheFirstHitNamesTheFeaturesOfAServiceWithoutNames) {
  const std::string first = hit("a", kBothEntries) + ",";
  const auto log = [](int doc) {
    return "422 response.hits.hits[" + std::to_string(doc) + "].fields._ltrlog[0].log: ";
  };
  EXPECT_EQ(error_of(request_of(hit("a", kBothEntries + R"(, {"name": "price"})")), kUnnamed),
            log(0) + "The log has more than the 2 features that the model expects.");
  EXPECT_EQ(error_of(request_of(hit("a", kTitleEntry)), kUnnamed),
            log(0) + "The log has 1 of the 2 features that the model expects.");
  EXPECT_EQ(error_of(request_of(first + hit("b", R"({"name": "titel"})")), kUnnamed),
            log(1) + "Feature 'titel' is not in the log of the first hit.");
  EXPECT_EQ(error_of(request_of(first + hit("b", kBodyEntry)), kUnnamed),
            log(1) + "The log has 1 of the 2 features that the model expects; it lacks 'title'.");
}

TEST(RerankRequest, KeepsTheLimitsOfARankRequest) {
  const std::string two = hit("a", kBothEntries) + "," + hit("b", kBothEntries) + ",";
  EXPECT_EQ(error_of(request_of(two + two), kUnnamed),
            "413 response.hits.hits[3]: A request may have at most 3 documents.");
  EXPECT_EQ(error_of(request_of(hit("a much too long ID", kBothEntries)), kUnnamed),
            "422 response.hits.hits[0]._id: The value has 18 bytes; the limit is 16.");
  RequestLimits groups = kUnnamed;
  groups.groups = 2;
  EXPECT_EQ(error_of(request_of(two + hit("c", kBothEntries)), groups),
            "422 response: This service has groups, which search responses do not name: send the documents "
            "to /v1/rank.");
  RequestLimits arms = kUnnamed;
  arms.incumbent = true;
  EXPECT_EQ(error_of(request_of(hit("a", kBothEntries)), arms), "none");
}

}  // namespace
}  // namespace olrank
