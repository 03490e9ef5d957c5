#include "core/metrics/score_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/metrics/evaluator.h"
#include "core/metrics/list_metrics.h"
#include "core/metrics/metric_options.h"
#include "core/text/text_table.h"
#include "tests/core/metrics/small_data.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

constexpr double kNoScore = -std::numeric_limits<double>::infinity();

Dataset data() {
  return make_dataset(
      {{"10", {1, 0, 2}, {"GX1", "GX2", "GX3"}}, {"11", {0, 1}, {}}, {"12", {1, 1}, {"twin", "twin"}}});
}

TEST(Scores, AreOneNumberPerLine) {
  const ExternalScores read = read_scores(
      TextLines::of_memory("# by hand\n1\r\n\t-2.5e-3 \n\n+3\n  # more\n4.\n-inf\n   \n6\n7", "s.txt"),
      data());
  EXPECT_EQ(read.scores, (std::vector<double>{1, -2.5e-3, 3, 4, kNoScore, 6, 7}));
  EXPECT_TRUE(read.retrieved.empty());
}

TEST(Scores, ErrorsHaveLineAndColumn) {
  expect_cases("core/metrics/score_files_test.txt", "scores", [](const std::string& text) {
    return message_of<DataError>([&] { read_scores(TextLines::of_memory(text, "s.txt"), data()); });
  });
}

TEST(TrecRun, FindsDocumentsByNameOrIndex) {
  const ExternalScores run = read_trec_run(
      TextLines::of_memory(
          "11 Q0 1 1 0.5 tag\r\n\n10 Q0 GX3 9 -1e2 tag\n 10\tQ0 GX1 1 7 tag\n11 Q0 0 1 0.5 tag", "r.run"),
      data());
  EXPECT_EQ(run.scores, (std::vector<double>{7, kNoScore, -100, 0.5, 0.5, kNoScore, kNoScore}));
  EXPECT_EQ(run.retrieved, (std::vector<std::int64_t>{2, 2, 0}));
  EXPECT_EQ(run.missing_docs, 3);
  EXPECT_EQ(run.missing_queries, 1);
}

TEST(TrecRun, ErrorsHaveLineAndColumn) {
  expect_cases("core/metrics/score_files_test.txt", "run", [](const std::string& text) {
    return message_of<DataError>([&] { read_trec_run(TextLines::of_memory(text, "r.run"), data()); });
  });
}

TEST(ScoreFiles, AreReadOnlyAsFarAsTheyCanBeRight) {
  EXPECT_EQ(message_of<DataError>([] { read_scores(TextLines::of_file("/dev/zero"), data()); }),
            "/dev/zero:1:2097153: The line is longer than 1.0 MB.");
  EXPECT_EQ(message_of<DataError>([] { read_trec_run(TextLines::of_file("/dev/zero"), data()); }),
            "/dev/zero:1:2097153: The line is longer than 1.0 MB.");
  const TemporaryFolder folder;
  std::string text = "1\n2\n3\n4\n5\n6\n7\n8\n";
  std::string run = "10 Q0 GX1 1 2 tag\n10 Q0 GX1 1 2 tag\n";
  for (int block = 0; block < 5; ++block) text += std::string(1 << 20, '\n');
  write_file_atomically(folder / "scores.txt", text + "no number\n");
  EXPECT_TRUE(contains(
      message_of<DataError>([&] { read_scores(TextLines::of_file(folder / "scores.txt"), data()); }),
      "8:1: This score has no document: the data has 7 documents."));
  // The first mistake of the file, whatever comes later.
  write_file_atomically(folder / "a.run", run + "no line of a run\n");
  EXPECT_TRUE(
      contains(message_of<DataError>([&] { read_trec_run(TextLines::of_file(folder / "a.run"), data()); }),
               "is already on line 1."));
}

TEST(Qrels, GroupsJudgementsByQuery) {
  const Qrels qrels = read_qrels(
      TextLines::of_memory("401 0 FT-1 1\n\n402\tQ0 FT-1 0\r\n 401 0 FT-2 -2\n401 x FT-3 4", "q.txt"));
  ASSERT_EQ(qrels.queries.size(), 2U);
  EXPECT_EQ(qrels.queries[0].qid, "401");
  EXPECT_EQ(qrels.queries[0].docs, (std::vector<std::string>{"FT-1", "FT-2", "FT-3"}));
  EXPECT_EQ(qrels.queries[0].grades, (std::vector<std::uint8_t>{1, 0, 4}));
  EXPECT_EQ(qrels.by_qid.at("402"), 1);
}

TEST(Qrels, ErrorsHaveLineAndColumn) {
  expect_cases("core/metrics/score_files_test.txt", "judgements", [](const std::string& text) {
    return message_of<DataError>([&] { read_qrels(TextLines::of_memory(text, "q.txt")); });
  });
}

TEST(JudgedRun, AddsUnjudgedDocumentsAndIgnoresOtherQueries) {
  const Qrels qrels = read_qrels(TextLines::of_memory("1 0 a 2\n1 0 b 0\n2 0 a 1\n3 0 c 1\n", "q.txt"));
  const JudgedRun run = read_judged_run(
      TextLines::of_memory("1 Q0 x 1 9 t\n1 Q0 a 2 8 t\n7 Q0 a 1 1 t\n2 Q0 a 1 3.5 t\n7 Q0 b 2 1 t\n",
                           "r.run"),
      qrels);
  EXPECT_EQ(run.data.queries(), 3);
  EXPECT_EQ(run.data.docs_of(0), 3);
  EXPECT_EQ(run.data.doc_name(2), "x");
  EXPECT_EQ(run.data.grades_of(0)[2], 0);
  EXPECT_EQ(run.scores.scores, (std::vector<double>{8, kNoScore, 9, 3.5, kNoScore}));
  EXPECT_EQ(run.scores.retrieved, (std::vector<std::int64_t>{2, 1, 0}));
  EXPECT_EQ(run.scores.missing_docs, 2);
  EXPECT_EQ(run.scores.missing_queries, 1);
  EXPECT_EQ(run.unjudged_docs, 1);
  EXPECT_EQ(run.ignored_queries, 1);
}

/// trec_eval's definitions, by hand: unjudged documents take ranks, the gain is the grade, a relevant
/// document that is not retrieved counts in the ideal list, equal scores go by name, descending, and a
/// query without results counts 0.
TEST(JudgedRun, IsEvaluatedAsTrecEvalDoes) {
  const Qrels qrels = read_qrels(TextLines::of_memory("1 0 a 2\n1 0 b 1\n1 0 c 1\n2 0 a 1\n", "q.txt"));
  const JudgedRun run =
      read_judged_run(TextLines::of_memory("1 Q0 b 1 5 t\n1 Q0 x 1 5 t\n1 Q0 a 3 1 t\n", "r.run"), qrels);
  MetricOptions options;
  apply_convention(Convention::kTrecEval, options);
  options.cutoffs = {5};
  options.named = {{MetricKind::kMap, 2}};
  ExecutionContext context;
  Evaluator evaluator(options);
  const MetricReport& report =
      evaluator.evaluate(run.data, run.scores.scores, context, run.scores.retrieved);
  const double ideal = 2.0 + 1.0 / std::log2(3.0) + 0.5;
  EXPECT_DOUBLE_EQ(report.ndcg[0], (1.0 / std::log2(3.0) + 2.0 * 0.5) / ideal / 2.0);
  EXPECT_DOUBLE_EQ(report.map, (1.0 / 2.0 + 2.0 / 3.0) / 3.0 / 2.0);
  EXPECT_DOUBLE_EQ(report.named[0], (1.0 / 2.0) / 3.0 / 2.0);
  EXPECT_DOUBLE_EQ(report.mrr, 0.5 / 2.0);
  EXPECT_DOUBLE_EQ(report.precision, 0.2 / 2.0);
}

TEST(JudgedRun, ErrorsHaveLineAndColumn) {
  const Qrels qrels = read_qrels(TextLines::of_memory("1 0 a 2\n", "q.txt"));
  expect_cases("core/metrics/score_files_test.txt", "judged runs", [&](const std::string& text) {
    return message_of<DataError>([&] { read_judged_run(TextLines::of_memory(text, "r"), qrels); });
  });
}

std::vector<std::vector<std::string>> fields_of(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) EXPECT_EQ(split_csv(line, rows.emplace_back()), "");
  return rows;
}

/// The mean of a column over the fields that hold something.
double mean_of(const std::vector<std::vector<std::string>>& rows, std::size_t column) {
  double sum = 0.0;
  double count = 0.0;
  for (std::size_t row = 1; row < rows.size(); ++row) {
    if (rows[row][column].empty()) continue;
    sum += std::strtod(rows[row][column].c_str(), nullptr);
    count += 1.0;
  }
  return sum / count;
}

TEST(PerQueryCsv, HasDocumentedHeader) {
  ExecutionContext context;
  Evaluator evaluator;
  const Dataset data = make_dataset({});
  evaluator.evaluate(data, std::span<const float>(), context);
  EXPECT_EQ(per_query_csv(data, evaluator),
            "qid,docs,ndcg@1,ndcg@3,ndcg@5,ndcg@10,map,mrr,p@10,err@10,arp,pairs\n");
}

TEST(PerQueryCsv, ColumnMeansEqualReportBitwise) {
  ExecutionContext context(2);
  for (const auto& [rule, name] : EnumNames<EmptyQueries>::values) {
    SCOPED_TRACE(name);
    RngStream coins = test_coins(7000);
    const Dataset data = random_dataset(coins, 150, 5);
    const std::vector<double> scores = random_scores(coins, data.docs(), false);
    MetricOptions options;
    options.cutoffs = {10, 1};
    options.empty_queries = rule;
    Evaluator evaluator(options);
    const MetricReport& report = evaluator.evaluate(data, scores, context);
    const auto rows = fields_of(per_query_csv(data, evaluator));
    ASSERT_EQ(rows.size(), 151U);
    EXPECT_EQ(rows[0][2], "ndcg@10");  // in the order of the cutoffs
    const std::vector<double> means = {report.ndcg[0],   report.ndcg[1], report.map, report.mrr,
                                       report.precision, report.err,     report.arp};
    for (std::size_t i = 0; i < means.size(); ++i)
      EXPECT_EQ(mean_of(rows, i + 2), means[i]) << rows[0][i + 2];
    std::int64_t pairs = 0;
    for (std::size_t row = 1; row < rows.size(); ++row) {
      ASSERT_EQ(rows[row].size(), 10U);
      EXPECT_EQ(rows[row][0], data.qid(static_cast<std::int64_t>(row - 1)));
      pairs += std::stoll(rows[row][9]);
    }
    EXPECT_EQ(pairs, report.misordered_pairs);
  }
}

TEST(PerQueryCsv, EmptyQueriesFollowTheirRule) {
  ExecutionContext context;
  const Dataset data = make_dataset({{"with,comma", {0, 0}, {}}, {"say \"q\"", {1}, {}}});
  const std::vector<float> scores = {1.0F, 2.0F, 3.0F};
  const auto first_lines = [&](EmptyQueries rule) {
    MetricOptions options;
    options.cutoffs = {1};
    options.empty_queries = rule;
    Evaluator evaluator(options);
    evaluator.evaluate(data, scores, context);
    const std::string csv = per_query_csv(data, evaluator);
    return csv.substr(csv.find('\n') + 1);
  };
  const std::string other = "\"say \"\"q\"\"\",1,1,1,1,0.1,0.5,1,0\n";
  EXPECT_EQ(first_lines(EmptyQueries::kZero), "\"with,comma\",2,0,0,0,0,0,,0\n" + other);
  EXPECT_EQ(first_lines(EmptyQueries::kOne), "\"with,comma\",2,1,1,1,1,1,,0\n" + other);
  EXPECT_EQ(first_lines(EmptyQueries::kSkip), "\"with,comma\",2,,,,,,,0\n" + other);
}

TEST(NamedMetric, ReadsBackEveryName) {
  for (const char* name :
       {"ndcg@5", "dcg@1", "err@10", "p@3", "map", "map@10", "mrr", "mrr@10", "arp", "pair_accuracy"}) {
    const auto metric = metric_named(name);
    ASSERT_TRUE(metric) << name;
    EXPECT_EQ(metric->name(), name);
  }
}

TEST(NamedMetric, SortsByKindAndThenByCutoff) {
  EXPECT_LT(*metric_named("ndcg@5"), *metric_named("ndcg@10"));
  EXPECT_LT(*metric_named("ndcg@10"), *metric_named("map"));
}

TEST(NamedMetric, RefusesOtherNamesWithTheValidOnes) {
  expect_cases("core/metrics/score_files_test.txt", "named metrics", [](const std::string& text) {
    std::vector<std::string> names;
    std::istringstream words(text);
    for (std::string name; words >> name;) names.push_back(name);
    return message_of<InvalidArgument>([&] { parse_metrics(names, "protocol.metrics"); });
  });
}

template <class Score>
std::vector<std::int32_t> ranked(const std::vector<Score>& scores) {
  Scratch scratch;
  std::vector<std::int32_t> order(scores.size());
  EXPECT_EQ(order_by_score(std::span<const Score>(scores), order, scratch), -1);
  return order;
}

template <class Score>
class ScoreOrderTest : public testing::Test {};
using ScoreTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(ScoreOrderTest, ScoreTypes);

TYPED_TEST(ScoreOrderTest, MatchesAStableDescendingSort) {
  for (std::uint32_t round = 0; round < 200; ++round) {
    RngStream coins = test_coins(5000 + round);
    const std::uint32_t docs = round < 4 ? round : coins.index(200);
    std::vector<TypeParam> scores;
    for (const double score : random_scores(coins, docs, coins.index(2) == 0)) {
      scores.push_back(static_cast<TypeParam>(score));
    }
    std::vector<std::int32_t> expected(docs);
    std::iota(expected.begin(), expected.end(), 0);
    std::stable_sort(expected.begin(), expected.end(),
                     [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
    EXPECT_EQ(ranked(scores), expected);
    for (const std::uint32_t top : {1U, 5U, 31U, 32U, 33U, 150U}) {
      Scratch scratch;
      std::vector<std::int32_t> order(std::min(top, docs));
      EXPECT_EQ(order_by_score(std::span<const TypeParam>(scores), order, scratch), -1);
      EXPECT_TRUE(std::equal(order.begin(), order.end(), expected.begin())) << top << " of " << docs;
    }
  }
}

TYPED_TEST(ScoreOrderTest, OrdersInfinitiesAndExtremes) {
  using Limits = std::numeric_limits<TypeParam>;
  const std::vector<TypeParam> scores = {
      -Limits::infinity(), Limits::denorm_min(),  -0.0,          0.0,
      Limits::infinity(),  -Limits::denorm_min(), Limits::max(), Limits::lowest()};
  EXPECT_EQ(ranked(scores), (std::vector<std::int32_t>{4, 6, 1, 2, 3, 5, 7, 0}));  // the zeros tie
}

TYPED_TEST(ScoreOrderTest, ReportsTheFirstNan) {
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  Scratch scratch;
  for (const std::vector<TypeParam>& scores : {std::vector<TypeParam>{1, 2, nan, -nan}, {0, 0, -nan, 1}}) {
    std::vector<std::int32_t> order(scores.size());
    EXPECT_EQ(order_by_score(std::span<const TypeParam>(scores), order, scratch), 2);
    order.resize(1);
    EXPECT_EQ(order_by_score(std::span<const TypeParam>(scores), order, scratch), 2);
  }
}

}  // namespace
}  // namespace olrank
