#include "core/metrics/score_files.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/metrics/evaluator.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

constexpr double kMissing = -std::numeric_limits<double>::infinity();

std::string about_qrels(const std::string& text) {
  return message_of<DataError>([&] { parse_qrels(text, "q.txt"); });
}

TEST(Qrels, GroupsJudgementsByQuery) {
  const Qrels qrels =
      parse_qrels("401 0 FT-1 1\n\n402\tQ0 FT-1 0\r\n 401 0 FT-2 -2\n401 x FT-3 4", "q.txt");
  ASSERT_EQ(qrels.queries.size(), 2U);
  EXPECT_EQ(qrels.queries[0].qid, "401");
  EXPECT_EQ(qrels.queries[0].docs, (std::vector<std::string>{"FT-1", "FT-2", "FT-3"}));
  EXPECT_EQ(qrels.queries[0].grades, (std::vector<std::uint8_t>{1, 0, 4}));
  EXPECT_EQ(qrels.by_qid.at("402"), 1);
}

TEST(Qrels, ErrorsHaveLineAndColumn) {
  EXPECT_EQ(about_qrels("1 0 a 1\n1 0 b\n"),
            "q.txt:2:6: A line of judgements must be 'qid 0 docno grade', but this line has 3 fields.");
  EXPECT_EQ(about_qrels("1 0 a 1 x y\n"),
            "q.txt:1:9: A line of judgements must be 'qid 0 docno grade', but this line has 6 fields.");
  EXPECT_EQ(about_qrels("1 0 a high\n"),
            "q.txt:1:7: The grade must be an integer of at most 31, not 'high'.");
  EXPECT_EQ(about_qrels("1 0 a 1.5\n"),
            "q.txt:1:7: The grade must be an integer of at most 31, not '1.5'.");
  EXPECT_EQ(about_qrels("1 0 a 32\n"), "q.txt:1:7: The grade must be an integer of at most 31, not '32'.");
  EXPECT_EQ(about_qrels("1 0 a 99999999999\n"),
            "q.txt:1:7: The grade must be an integer of at most 31, not '99999999999'.");
  EXPECT_EQ(about_qrels("1 0 a 1\n2 0 a 1\n1 0 a 0\n"),
            "q.txt:3:5: Document 'a' of query '1' is already judged on line 1.");
  EXPECT_EQ(about_qrels("\n"), "q.txt: The file has no judgement: lines must be 'qid 0 docno grade'.");
}

TEST(JudgedRun, AddsUnjudgedDocumentsAndIgnoresOtherQueries) {
  const Qrels qrels = parse_qrels("1 0 a 2\n1 0 b 0\n2 0 a 1\n3 0 c 1\n", "q.txt");
  const JudgedRun run = parse_judged_run(
      "1 Q0 x 1 9 t\n1 Q0 a 2 8 t\n7 Q0 a 1 1 t\n2 Q0 a 1 3.5 t\n7 Q0 b 2 1 t\n", "r.run", qrels);
  EXPECT_EQ(run.data.queries(), 3);
  EXPECT_EQ(run.data.docs_of(0), 3);
  EXPECT_EQ(run.data.doc_name(2), "x");
  EXPECT_EQ(run.data.grades_of(0)[2], 0);
  EXPECT_EQ(run.scores.scores, (std::vector<double>{8, kMissing, 9, 3.5, kMissing}));
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
  const Qrels qrels = parse_qrels("1 0 a 2\n1 0 b 1\n1 0 c 1\n2 0 a 1\n", "q.txt");
  const JudgedRun run = parse_judged_run("1 Q0 b 1 5 t\n1 Q0 x 1 5 t\n1 Q0 a 3 1 t\n", "r.run", qrels);
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

TEST(JudgedRun, RefusesADocumentThatIsListedTwice) {
  const Qrels qrels = parse_qrels("1 0 a 2\n", "q.txt");
  EXPECT_EQ(message_of<DataError>([&] { parse_judged_run("1 Q0 x 1 2 t\n1 Q0 x 2 1 t\n", "r", qrels); }),
            "r:2:6: Document 'x' of query '1' is already listed on line 1.");
  EXPECT_EQ(message_of<DataError>([&] { parse_judged_run("1 Q0 x 1\n", "r", qrels); }),
            "r:1:9: A line of a run must be 'qid Q0 docno rank score tag', but this line has 4 fields.");
}

}  // namespace
}  // namespace olrank
