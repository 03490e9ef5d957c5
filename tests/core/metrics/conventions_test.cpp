#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/metrics/evaluator.h"
#include "core/metrics/score_files.h"
#include "tests/core/metrics/small_data.h"

// What other tools print for small cases, derived from their sources; docs/METRICS.md names them.
namespace olrank {
namespace {

constexpr double kTolerance = 1e-15;

MetricOptions options_of(Convention convention, std::vector<std::int64_t> cutoffs) {
  MetricOptions options;
  options.cutoffs = std::move(cutoffs);
  apply_convention(convention, options);
  return options;
}

MetricReport judge(Convention convention, const Dataset& data, const std::vector<double>& scores,
                   std::vector<std::int64_t> cutoffs) {
  ExecutionContext context;
  return Evaluator(options_of(convention, std::move(cutoffs)))
      .evaluate(data, std::span<const double>(scores), context);
}

// Three documents of grades 0 2 1 in this order of scores, and a query without a relevant one.
const std::vector<SmallQuery> kTwoQueries = {{"1", {0, 2, 1}, {}}, {"2", {0, 0, 0}, {}}};
const std::vector<double> kFallingScores = {3, 2, 1, 3, 2, 1};

TEST(LetorConvention, LeavesTwoRanksUndiscountedAndCountsShortListsAsZero) {
  const MetricReport report =
      judge(Convention::kLetor, make_dataset(kTwoQueries), kFallingScores, {1, 2, 3, 4});
  const double log3 = std::log2(3.0);
  EXPECT_EQ(report.ndcg[0], 0.0);
  EXPECT_NEAR(report.ndcg[1], 0.5 * 3.0 / (3.0 + 1.0), kTolerance);                 // ranks 1 and 2 whole
  EXPECT_NEAR(report.ndcg[2], 0.5 * (3.0 + 1.0 / log3) / (3.0 + 1.0), kTolerance);  // rank 3 by 1/log2 3
  EXPECT_EQ(report.ndcg[3], 0.0);  // no list has four documents
  EXPECT_NEAR(report.map, 0.5 * (1.0 / 2.0 + 2.0 / 3.0) / 2.0, kTolerance);
  EXPECT_NEAR(report.precision, 0.5 * 2.0 / 10.0, kTolerance);
  EXPECT_EQ(report.empty_queries, 1);
}

TEST(LightgbmConvention, CountsEmptyQueriesAsOne) {
  const MetricReport report =
      judge(Convention::kLightgbm, make_dataset(kTwoQueries), kFallingScores, {1, 3, 4});
  const double log3 = std::log2(3.0);
  const double of_first = (3.0 / log3 + 1.0 / 2.0) / (3.0 + 1.0 / log3);
  EXPECT_EQ(report.ndcg[0], 0.5);
  EXPECT_NEAR(report.ndcg[1], (of_first + 1.0) / 2.0, kTolerance);
  EXPECT_EQ(report.ndcg[2], report.ndcg[1]);
  EXPECT_NEAR(report.map, ((1.0 / 2.0 + 2.0 / 3.0) / 2.0 + 1.0) / 2.0, kTolerance);
}

TEST(TrecEvalConvention, HasLinearGain) {
  const MetricReport report = judge(Convention::kTrecEval, make_dataset(kTwoQueries), kFallingScores, {3});
  const double log3 = std::log2(3.0);
  EXPECT_NEAR(report.ndcg[0], 0.5 * (2.0 / log3 + 1.0 / 2.0) / (2.0 + 1.0 / log3), kTolerance);
}

// https://github.com/usnistgov/trec_eval/issues/22: equal scores, and the relevant document is b. Against a
// it stands first, NDCG 1; against c it stands second, NDCG 0.6309.
TEST(TrecEvalConvention, BreaksTiesByNameDescendingIgnoringRankColumn) {
  const Dataset data = make_dataset({{"1", {0, 1, 0}, {"a", "b", "c"}}});
  const auto ndcg_of_run = [&](const char* run, Convention convention) {
    ExecutionContext context;
    const ExternalScores read = read_trec_run(TextLines::of_memory(run, "run"), data);
    Evaluator evaluator(options_of(convention, {10}));
    return evaluator.evaluate(data, read.scores, context, read.retrieved).ndcg[0];
  };
  const char* against_a = "1 0 b 1 1.0 run1\n1 0 a 2 1.0 run1\n";
  const char* against_c = "1 0 b 1 1.0 run2\n1 0 c 2 1.0 run2\n";
  EXPECT_EQ(ndcg_of_run(against_a, Convention::kTrecEval), 1.0);
  EXPECT_NEAR(ndcg_of_run(against_c, Convention::kTrecEval), 1.0 / std::log2(3.0), kTolerance);
  EXPECT_NEAR(ndcg_of_run(against_c, Convention::kTrecEval), 0.6309, 5e-5);
  // By index b stands behind a and before c.
  EXPECT_NEAR(ndcg_of_run(against_a, Convention::kOlrank), 1.0 / std::log2(3.0), kTolerance);
  EXPECT_EQ(ndcg_of_run(against_c, Convention::kOlrank), 1.0);
}

// https://github.com/terrierteam/ir_measures/issues/18: P_1 is 1 for documents 0 and 1 tied at score 0.
TEST(TrecEvalConvention, NamelessDocumentsUseTheirIndexAsName) {
  EXPECT_EQ(judge(Convention::kTrecEval, make_dataset({{"0", {0, 1}, {}}}), {0.0, 0.0}, {1}).ndcg[0], 1.0);
  std::vector<std::uint8_t> grades(11, 0);
  grades[9] = 1;  // "9" sorts after "10" by bytes, so it comes first
  EXPECT_EQ(
      judge(Convention::kTrecEval, make_dataset({{"0", grades, {}}}), std::vector<double>(11, 0.5), {1})
          .ndcg[0],
      1.0);
}

TEST(TrecEvalConvention, DocumentsNotRetrievedAreNeverShown) {
  const Dataset data = make_dataset({{"1", {1, 0, 1}, {"a", "b", "c"}}, {"2", {1}, {"a"}}});
  const ExternalScores run =
      read_trec_run(TextLines::of_memory("1 Q0 b 1 2 t\n1 Q0 a 2 1 t\n", "run"), data);
  const auto judged = [&](Convention convention) {
    ExecutionContext context;
    Evaluator evaluator(options_of(convention, {10}));
    return evaluator.evaluate(data, run.scores, context, run.retrieved);
  };
  const double ideal = 1.0 + 1.0 / std::log2(3.0);
  const MetricReport lost = judged(Convention::kTrecEval);
  EXPECT_NEAR(lost.ndcg[0], 0.5 * (1.0 / std::log2(3.0)) / ideal,
              kTolerance);  // query 2 counts 0, as with -c
  EXPECT_NEAR(lost.map, 0.5 * (1.0 / 2.0) / 2.0, kTolerance);
  const MetricReport last = judged(Convention::kOlrank);
  EXPECT_NEAR(last.ndcg[0], 0.5 * (1.0 / std::log2(3.0) + 0.5) / ideal + 0.5, kTolerance);
  EXPECT_EQ(run.missing_docs, 2);
  EXPECT_EQ(run.missing_queries, 1);
}

TEST(Conventions, MatchFiguresInDocs) {
  const Dataset data = make_dataset(kTwoQueries);
  const auto ndcg_at_3 = [&](Convention convention) {
    return judge(convention, data, kFallingScores, {3}).ndcg[0];
  };
  EXPECT_NEAR(ndcg_at_3(Convention::kOlrank), 0.329501, 5e-7);
  EXPECT_NEAR(ndcg_at_3(Convention::kLetor), 0.453866, 5e-7);
  EXPECT_NEAR(ndcg_at_3(Convention::kLightgbm), 0.829501, 5e-7);
  EXPECT_NEAR(ndcg_at_3(Convention::kTrecEval), 0.334836, 5e-7);
}

TEST(Conventions, LeaveCutoffsAlone) {
  MetricOptions options;
  options.cutoffs = {2, 7};
  options.max_grade = 4;
  for (const auto& [convention, name] : EnumNames<Convention>::values) {
    apply_convention(convention, options);
    EXPECT_EQ(options.cutoffs, (std::vector<std::int64_t>{2, 7}));
    EXPECT_EQ(options.max_grade, 4);
  }
  apply_convention(Convention::kOlrank, options);  // nothing of the one before stays
  EXPECT_EQ(options.gain, Gain::kExponential);
  EXPECT_EQ(options.ties, Ties::kDocIndex);
  EXPECT_EQ(options.unretrieved, Unretrieved::kLast);
}

TEST(Conventions, AreDescribedInWords) {
  EXPECT_EQ(describe_conventions({}),
            "gain 2^grade - 1, discount 1/log2(rank + 2) (rank from 0), ties by document index, empty "
            "queries count 0");
  MetricOptions letor;
  apply_convention(Convention::kLetor, letor);
  EXPECT_NE(describe_conventions(letor).find("NDCG@k of lists shorter than k is 0"), std::string::npos);
}

}  // namespace
}  // namespace olrank
