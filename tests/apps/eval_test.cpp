#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/command.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "jobs/rankings.h"
#include "tests/core/metrics/small_data.h"
#include "tests/support/cases.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

Dataset data() {
  return make_dataset({{"1", {0, 2, 1}, {}}, {"2", {0, 0}, {}}});
}

class EvalTest : public testing::Test {
 protected:
  EvalTest() {
    write_file_atomically(folder_ / "scores", "3\n2\n1\n0\n0\n");
    write_file_atomically(folder_ / "run", "1 Q0 2 1 0.5 t\n1 Q0 0 2 0.5 t\n");
    request_.data = "somewhere";
    request_.metrics.cutoffs = {1, 3};
  }
  std::string answered(const Dataset& data, bool json) {
    const EvalResult answers[] = {evaluate_ranking(request_, data, context_)};
    return json ? eval_json(answers) : eval_table(answers);
  }

  TemporaryFolder folder_;
  EvalRequest request_;
  ExecutionContext context_;
};

TEST_F(EvalTest, JsonContainsMetricsAndConventions) {
  request_.scores = folder_ / "scores";
  const auto answer = nlohmann::json::parse(answered(data(), true));
  const double ndcg = (3.0 / std::log2(3.0) + 0.5) / (3.0 + 1.0 / std::log2(3.0)) / 2.0;
  EXPECT_EQ(answer["metrics"]["ndcg@3"].get<double>(), ndcg);  // numbers are printed exactly
  EXPECT_EQ(answer["metrics"]["ndcg@1"].get<double>(), 0.0);
  EXPECT_EQ(answer["metrics"]["misordered_pairs"].get<int>(), 2);
  EXPECT_EQ(answer["empty_queries"].get<int>(), 1);
  EXPECT_EQ(answer["conventions"]["convention"], "olrank");
  EXPECT_EQ(answer["conventions"]["ties"], "doc-index");
  EXPECT_EQ(answer["conventions"]["max_grade"].get<int>(), 2);
  EXPECT_FALSE(answer.contains("run"));
}

TEST_F(EvalTest, JsonHasNullForUndefinedMeans) {
  request_.scores = folder_ / "scores";
  request_.metrics.empty_queries = EmptyQueries::kSkip;
  const Dataset empty = make_dataset({{"1", {0, 0, 0, 0, 0}, {}}});
  const auto answer = nlohmann::json::parse(answered(empty, true));
  EXPECT_TRUE(answer["metrics"]["ndcg@1"].is_null());
  EXPECT_TRUE(answer["metrics"]["arp"].is_null());
}

TEST_F(EvalTest, TableShowsConventions) {
  request_.run = folder_ / "run";
  request_.overrides = {"gain linear"};
  const std::string table = answered(data(), false);
  EXPECT_TRUE(contains(table, "somewhere, fold 1, test"));
  EXPECT_TRUE(contains(table, "1 without a relevant document, counted as 0"));
  EXPECT_TRUE(contains(table, "3 documents, ranked last in index order; queries without any: 1"));
  EXPECT_TRUE(contains(table, "olrank with gain linear: gain 2^grade - 1"));
  EXPECT_TRUE(contains(table, "ties by document index"));
}

// Documents 0 (grade 0) and 2 (grade 1) tie in the run: by index 0 comes first, by descending name 2.
TEST_F(EvalTest, BreaksTiesByTheConvention) {
  request_.run = folder_ / "run";
  const auto mrr = [&] {
    return nlohmann::json::parse(answered(data(), true))["metrics"]["mrr"].get<double>();
  };
  EXPECT_EQ(mrr(), 0.5 / 2.0);
  apply_convention(Convention::kTrecEval, request_.metrics);
  EXPECT_EQ(mrr(), 1.0 / 2.0);
}

TEST_F(EvalTest, WritesPerQueryMetrics) {
  request_.scores = folder_ / "scores";
  request_.per_query = folder_ / "queries.csv";
  answered(data(), true);
  const std::string csv = read_file(folder_ / "queries.csv");
  EXPECT_EQ(csv.substr(0, csv.find('\n')), "qid,docs,ndcg@1,ndcg@3,map,mrr,p@10,err@10,arp,pairs");
}

TEST_F(EvalTest, KeepsExistingFilesWhenScoresAreInvalid) {
  write_file_atomically(folder_ / "scores", "1\n2\nnan\n");
  write_file_atomically(folder_ / "queries.csv", "earlier");
  request_.scores = folder_ / "scores";
  request_.per_query = folder_ / "queries.csv";
  EXPECT_THROW(answered(data(), true), DataError);
  EXPECT_EQ(read_file(folder_ / "queries.csv"), "earlier");
}

TEST_F(EvalTest, RefusesScoresForReorderedDocuments) {
  Dataset::Contents contents = data().contents();
  contents.reordered = true;
  request_.scores = folder_ / "scores";
  EXPECT_THROW(evaluate_ranking(request_, Dataset(contents), context_), InvalidArgument);
  request_.scores.clear();
  request_.run = folder_ / "run";
  EXPECT_NO_THROW(evaluate_ranking(request_, Dataset(contents), context_));
}

TEST_F(EvalTest, AveragesOverFolds) {
  request_.scores = folder_ / "scores";
  std::vector<EvalResult> folds = {evaluate_ranking(request_, data(), context_)};
  folds.push_back(folds.front());
  folds[0].report.map = 0.25;
  folds[1].report.map = 0.75;
  const auto json = nlohmann::json::parse(eval_json(folds));
  EXPECT_EQ(json["folds"].size(), 2U);
  EXPECT_EQ(json["mean"]["map"].get<double>(), 0.5);
  EXPECT_TRUE(contains(eval_table(folds), "mean over 2 folds"));
}

/// Returns what the command says when it refuses these words.
std::string complaint_about(const std::string& words) {
  CLI::App app;
  const std::unique_ptr<Command> command = kEvalCommand.make();
  command->declare(app);
  app.parse(words);
  return message_of<InvalidArgument>([&] { command->run({}); });
}

TEST(EvalUsage, ExplainsWrongUsage) {
  expect_cases("apps/eval_test.txt", "usage", complaint_about);
}

}  // namespace
}  // namespace olrank
