#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "serve/requests.h"
#include "serve/search_response.h"
#include "tests/support/api_refusal.h"
#include "tests/support/cases.h"

namespace olrank {
namespace {

const RequestLimits kLimits{3, 2, 10, 8};

std::string rank_error(const std::string& body, const RequestLimits& limits = kLimits) {
  return refusal_text([&] {
    RankRequest request;
    parse_rank_request(body, limits, request);
  });
}

template <class Outcome>
void expect_requests(const std::string& section, const Outcome& outcome) {
  expect_cases("serve/requests_test.txt", section, outcome);
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
  expect_requests("rank", [](const std::string& body) { return rank_error(body); });
  EXPECT_TRUE(rank_error(std::string(100000, '[')).starts_with("422 body: "));
  EXPECT_TRUE(rank_error(R"({"query": )" + std::string(100000, '[') + "}").starts_with("422 query: "));
  RequestLimits named = kLimits;
  named.names = {{"title", 0}, {"price", 1}};
  expect_requests("rank by title and price",
                  [&](const std::string& body) { return rank_error(body, named); });
}

TEST(RankRequest, TakesAGroupPerDocument) {
  RequestLimits limits = kLimits;
  limits.groups = 2;
  limits.most_ranks = 12;
  expect_requests("rank with two groups",
                  [&](const std::string& body) { return rank_error(body, limits); });
  RankRequest request;
  parse_rank_request(
      R"({"docs": [{"id": 1, "group": "B", "features": [1, 2]}, {"id": 2, "features": {}, "group": "A"}], "query": "q"})",
      limits, request);
  EXPECT_EQ(request.groups, (std::vector<DocGroup>{DocGroup::kB, DocGroup::kA}));
  limits.groups = 3;
  const auto of_group = [](const std::string& group) {
    return R"({"query": "q", "docs": [{"id": "a", "features": [1, 2], "group": ")" + group + "\"}]}";
  };
  parse_rank_request(of_group("C"), limits, request);
  EXPECT_EQ(index_of(request.groups.at(0)), 2U);
  EXPECT_TRUE(rank_error(of_group("D"), limits).starts_with("422 docs[0].group: "));
}

TEST(RankRequest, TakesTheOrderOfAnIncumbent) {
  RankRequest request;
  // An ID is that of its document, whether it was a number or a text.
  parse_rank_request(
      R"({"query": "q", "docs": [{"id": "a", "features": [1, 2]}, {"id": 7, "features": [1, 2]}], "incumbent": ["7", "a"]})",
      kLimits, request);
  EXPECT_EQ(request.incumbent, (std::vector<DocId>{{"7", true}, {"a", false}}));
}

// A sparse document of a few bytes has as many features in memory as a full one.
TEST(RankRequest, LimitsTheDocumentsAndTheFeaturesOfAll) {
  RequestLimits limits{3, 1000, 10, 8};
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
  EXPECT_TRUE(refusal_text([&] { parse(3); }).starts_with("413 docs[2].features: "));
  limits.values = 1'000'000;
  EXPECT_EQ(parse(3), 3000U);
  EXPECT_TRUE(refusal_text([&] { parse(4); }).starts_with("413 docs[3]: "));
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
  expect_requests("feedback", [](const std::string& body) {
    return refusal_text([&] { parse_feedback_request(body, kLimits); });
  });
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

std::string rerank_error(const std::string& body, const RequestLimits& limits) {
  return refusal_text([&] {
    RankRequest request;
    parse_rerank_request(body, limits, request);
  });
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
  expect_requests("hits with origins", [](const std::string& hits) {
    return rerank_error(request_of(hits), limits_with(kOrigins));
  });
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
  const auto of_hits = [](const RequestLimits& limits) {
    return [limits](const std::string& hits) { return rerank_error(request_of(hits), limits); };
  };
  expect_requests("search requests",
                  [](const std::string& body) { return rerank_error(body, named_limits()); });
  expect_requests("hits of title and body", of_hits(named_limits()));
  expect_requests("log of title and body", [](const std::string& entries) {
    return rerank_error(request_of(hit("a", entries)), named_limits());
  });
  expect_requests("hits of two features without names", of_hits(kUnnamed));
  RequestLimits groups = kUnnamed;
  groups.groups = 2;
  EXPECT_EQ(of_hits(groups)(hit("a", kBothEntries)),
            "422 response: This service has groups, which search responses do not name: send the documents "
            "to /v1/rank.");
  RequestLimits arms = kUnnamed;
  arms.incumbent = true;
  EXPECT_EQ(of_hits(arms)(hit("a", kBothEntries)), "none");
}

}  // namespace
}  // namespace olrank
