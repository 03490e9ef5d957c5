#include "jobs/rankings.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/metrics/score_files.h"
#include "jobs/recommending/recommender_run.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

/// The two-sided p-value of Student's t with two degrees of freedom, in closed form.
double p_of_three(std::vector<double> differences) {
  const double mean = (differences[0] + differences[1] + differences[2]) / 3.0;
  double squares = 0.0;
  for (const double difference : differences) squares += (difference - mean) * (difference - mean);
  const double t = mean / std::sqrt(squares / 2.0 / 3.0);
  return 1.0 - std::abs(t) / std::sqrt(2.0 + t * t);
}

class EvalComparisonTest : public testing::Test {
 protected:
  /// A run of three queries whose only relevant document stands at these ranks, from 1.
  static ComparedRanking ranking(const std::string& name, const std::vector<int>& ranks) {
    const Qrels qrels = read_qrels(TextLines::of_memory("1 0 r 1\n2 0 r 1\n3 0 r 1\n", "q"));
    std::string run;
    for (std::size_t query = 0; query < 3; ++query) {
      for (int rank = 1; rank <= 4; ++rank) {
        run += fmt::format("{} Q0 {} {} {} t\n", query + 1,
                           rank == ranks[query] ? "r" : fmt::format("x{}", rank), rank, 10 - rank);
      }
    }
    const TemporaryFolder folder;
    write_file_atomically(folder / "run", run);
    EvalRequest request;
    request.qrels = "q";
    request.run = (folder / "run").string();
    request.keep_queries = true;
    apply_convention(Convention::kTrecEval, request.metrics);
    request.metrics.named = {{MetricKind::kMrr, 0}, {MetricKind::kPrecision, 1}};
    ExecutionContext context;
    return {name, name + ".run", {evaluate_judged_run(request, qrels, context)}};
  }

  static std::vector<ComparedRanking> three() {
    return {ranking("a", {1, 1, 2}), ranking("b_1", {2, 3, 2}), ranking("c", {4, 4, 1})};
  }

  ExecutionContext context_;
};

TEST_F(EvalComparisonTest, PairsByQueryAndCorrectsOverPairsAndMetrics) {
  const EvalComparison comparison =
      compare_rankings({ranking("a", {1, 1, 2}), ranking("b", {2, 3, 2})}, "b", context_);
  ASSERT_EQ(comparison.differences.size(), 2U);
  const RankingDifference& mrr = comparison.differences[0];
  EXPECT_DOUBLE_EQ(comparison.means[0][0], (1.0 + 1.0 + 0.5) / 3.0);
  EXPECT_DOUBLE_EQ(mrr.test.difference.mean, (0.5 + 2.0 / 3.0) / 3.0);
  const double p_mrr = p_of_three({0.5, 2.0 / 3.0, 0.0});
  const double p_precision = p_of_three({1.0, 1.0, 0.0});
  EXPECT_NEAR(mrr.test.t_p, p_mrr, 1e-12);
  EXPECT_EQ(mrr.test.flip_p, 0.5);  // of the 4 signs of the two differences, two are as far from 0
  EXPECT_NEAR(comparison.differences[1].test.t_p, p_precision, 1e-12);
  ASSERT_LT(p_precision, p_mrr);
  EXPECT_NEAR(comparison.differences[1].t_holm, 2.0 * p_precision, 1e-12);
  EXPECT_NEAR(mrr.t_holm, std::max(2.0 * p_precision, p_mrr), 1e-12);
  EXPECT_EQ(mrr.flip_holm, 1.0);
  EXPECT_EQ(std::vector({mrr.wins, mrr.ties, mrr.losses}), (std::vector<std::int64_t>{2, 1, 0}));
}

TEST_F(EvalComparisonTest, ComparesAllPairsWithoutABaseline) {
  const EvalComparison all = compare_rankings(three(), std::nullopt, context_);
  EXPECT_EQ(all.differences.size(), 6U);
  EXPECT_EQ(all.baseline, 0U);  // the best by MRR
  const EvalComparison some = compare_rankings(three(), "c", context_);
  EXPECT_EQ(some.differences.size(), 4U);
  for (const RankingDifference& difference : some.differences) EXPECT_EQ(difference.b, 2U);
  EXPECT_EQ(message_of<InvalidArgument>([&] { compare_rankings(three(), "d", context_); }).substr(0, 39),
            "--baseline must be a, b_1 or c, not 'd'");
}

TEST_F(EvalComparisonTest, JsonHasEveryDifference) {
  const EvalComparison comparison = compare_rankings(three(), std::nullopt, context_);
  const auto json = nlohmann::json::parse(comparison_json(comparison));
  EXPECT_EQ(json["queries"], 3);
  EXPECT_EQ(json["holm_tests"], 6);
  EXPECT_EQ(json["rankings"][1]["name"], "b_1");
  EXPECT_DOUBLE_EQ(json["rankings"][2]["metrics"]["mrr"].get<double>(), 0.5);
  const auto& first = json["comparisons"][0];
  EXPECT_EQ(first["a"], "b_1");
  EXPECT_EQ(first["b"], "a");
  EXPECT_EQ(first["losses"], 2);
  const auto& difference = comparison.differences[0].test.difference;
  EXPECT_DOUBLE_EQ(first["low"].get<double>(), difference.mean - difference.half_width);
}

TEST_F(EvalComparisonTest, TableNamesTheFamilyOfTests) {
  const std::string all = comparison_table(compare_rankings(three(), std::nullopt, context_));
  EXPECT_TRUE(contains(all, "all 6 tests of one kind: 3 pairs of rankings times 2 metrics"));
  EXPECT_TRUE(contains(all, "0/1/2"));
  const std::string some = comparison_table(compare_rankings(three(), "c", context_));
  EXPECT_TRUE(contains(some, "all 4 tests of one kind: 2 comparisons with c times 2 metrics"));
}

TEST_F(EvalComparisonTest, PerQueryValuesNameTheirRanking) {
  const std::string csv = comparison_queries_csv(compare_rankings(three(), "c", context_), 0);
  EXPECT_EQ(csv.rfind("ranking,qid,docs,ndcg@1,", 0), 0U);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 10);
  EXPECT_TRUE(contains(csv, "\nb_1,3,"));
}

TEST_F(EvalComparisonTest, RefusesDifferentQueries) {
  std::vector<ComparedRanking> rankings = three();
  rankings[1].folds[0].qids[0] = "other";
  EXPECT_EQ(message_of<InvalidArgument>([&] { compare_rankings(rankings, "c", context_); }),
            "'b_1' and 'a' were evaluated on different queries.");
}

TEST(RankingNames, ComeFromFilesAndTrials) {
  EXPECT_EQ(ranking_names({"x/bm25.run", "runs/e/trials/full/perfect/fold1/seed2", "y/{fold}/m{fold}.txt",
                           "runs/e/trials/diag/perfect/fold1/seed2/model.safetensors"}),
            (std::vector<std::string>{"bm25", "full", "m", "diag"}));
  EXPECT_EQ(ranking_names({"e/trials/full/perfect/fold1/seed1", "e/trials/full/perfect/fold1/seed2"}),
            (std::vector<std::string>{"full/perfect/fold1/seed1", "full/perfect/fold1/seed2"}));
  EXPECT_EQ(
      ranking_names({"d/trials/full/perfect/fold1/seed1", "e/trials/full/perfect/fold1/seed1"}),
      (std::vector<std::string>{"d/trials/full/perfect/fold1/seed1", "e/trials/full/perfect/fold1/seed1"}));
  EXPECT_EQ(ranking_names({"x/a.run", "y/a.run"}), (std::vector<std::string>{"x/a.run", "y/a.run"}));
}

RankingFigures figures_of(const std::vector<double>& ndcg) {
  RankingFigures figures;
  figures.cutoffs = {50};
  figures.users = {0, 1, 2};
  figures.ndcg = {ndcg};
  figures.hits = {{1.0, 1.0, 1.0}};
  return figures;
}

TEST(RecommenderComparison, GivesThePValuesComputedByHand) {
  const double smaller = p_of_three({0.1, 0.2, 0.3});
  const double larger = p_of_three({0.1, 0.1, 0.4});
  const std::vector<RankingFigures> judged = {figures_of({0.1, 0.2, 0.3}), figures_of({0.2, 0.3, 0.7}),
                                              figures_of({0.2, 0.4, 0.6})};
  const std::vector<nlohmann::ordered_json> compared = compared_with_first(judged);
  ASSERT_EQ(compared.size(), 2U);
  EXPECT_NEAR(compared[0]["ndcg@50"]["difference"].get<double>(), 0.2, 1e-12);
  EXPECT_NEAR(compared[0]["ndcg@50"]["p"].get<double>(), larger, 1e-9);
  EXPECT_NEAR(compared[1]["ndcg@50"]["p"].get<double>(), smaller, 1e-9);
  // Hits are equal, so p = 1 twice. Four tests: the smallest p times 4, the next times 3.
  EXPECT_EQ(compared[0]["hit@50"]["p"].get<double>(), 1.0);
  EXPECT_NEAR(compared[1]["ndcg@50"]["p_holm"].get<double>(), 4.0 * smaller, 1e-9);
  EXPECT_NEAR(compared[0]["ndcg@50"]["p_holm"].get<double>(), 3.0 * larger, 1e-9);
  EXPECT_EQ(compared[1]["hit@50"]["p_holm"].get<double>(), 1.0);
  EXPECT_TRUE(compared_with_first(std::vector{judged.front()}).empty());
}

}  // namespace
}  // namespace olrank
