#include "core/metrics/named_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tests/core/metrics/small_data.h"

namespace olrank {
namespace {

std::vector<std::vector<std::string>> fields_of(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::string field;
    for (const char c : line + ",") {
      if (c == ',') {
        rows.back().push_back(field);
        field.clear();
      } else {
        field += c;
      }
    }
  }
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

}  // namespace
}  // namespace olrank
