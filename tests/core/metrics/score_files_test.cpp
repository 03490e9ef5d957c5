#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/metrics/evaluator.h"
#include "core/metrics/score_files.h"
#include "tests/core/metrics/small_data.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

constexpr double kNoScore = -std::numeric_limits<double>::infinity();

Dataset data() {
  return make_dataset(
      {{"10", {1, 0, 2}, {"GX1", "GX2", "GX3"}}, {"11", {0, 1}, {}}, {"12", {1, 1}, {"twin", "twin"}}});
}

std::string about_scores(const std::string& text) {
  return message_of<DataError>([&] { read_scores(TextLines::of_memory(text, "s.txt"), data()); });
}

std::string about_run(const std::string& text) {
  return message_of<DataError>([&] { read_trec_run(TextLines::of_memory(text, "r.run"), data()); });
}

TEST(Scores, AreOneNumberPerLine) {
  const ExternalScores read = read_scores(
      TextLines::of_memory("# by hand\n1\r\n\t-2.5e-3 \n\n+3\n  # more\n4.\n-inf\n   \n6\n7", "s.txt"),
      data());
  EXPECT_EQ(read.scores, (std::vector<double>{1, -2.5e-3, 3, 4, kNoScore, 6, 7}));
  EXPECT_TRUE(read.retrieved.empty());
}

TEST(Scores, ErrorsHaveLineAndColumn) {
  EXPECT_EQ(about_scores("1\n2\n x3\n"), "s.txt:3:2: 'x3' is not a number.");
  EXPECT_EQ(about_scores("1\n2 3\n"), "s.txt:2:3: A line must have one score, but '3' follows it.");
  EXPECT_EQ(about_scores("1\nnan\n"), "s.txt:2:1: The score is NaN; documents cannot be ranked by it.");
  EXPECT_EQ(about_scores("1e999\n"), "s.txt:1:1: The score '1e999' is out of range for a double.");
  EXPECT_EQ(about_scores("+-1\n"), "s.txt:1:1: '+-1' is not a number.");
  EXPECT_EQ(about_scores("+\n"), "s.txt:1:1: '+' is not a number.");
  EXPECT_EQ(about_scores("1\n2\n"),
            "s.txt: The file has 2 scores, but the data has 7 documents; each document needs one.");
  EXPECT_EQ(about_scores(""),
            "s.txt: The file has 0 scores, but the data has 7 documents; each document needs one.");
  EXPECT_EQ(about_scores("1\n2\n3\n4\n5\n6\n7\n8\n"),
            "s.txt:8:1: This score has no document: the data has 7 documents.");
  EXPECT_EQ(about_scores(std::string("\0\x01\n", 3)),
            "s.txt:1:1: '?"
            "?' is not a number.");
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
  EXPECT_EQ(
      about_run("10 Q0 GX1 1 2\n"),
      "r.run:1:14: A line of a run must be 'qid Q0 docno rank score tag', but this line has 5 fields.");
  EXPECT_EQ(
      about_run("10 Q0 GX1 1 2 tag more\n"),
      "r.run:1:19: A line of a run must be 'qid Q0 docno rank score tag', but this line has 7 fields.");
  EXPECT_EQ(about_run("\n13 Q0 GX1 1 2 tag\n"), "r.run:2:1: The data has no query '13'.");
  EXPECT_EQ(about_run("10 Q0 GX9 1 2 tag\n"), "r.run:1:7: Query '10' has no document 'GX9'.");
  EXPECT_EQ(about_run("11 Q0 2 1 2 tag\n"), "r.run:1:7: Query '11' has no document '2'.");
  EXPECT_EQ(about_run("11 Q0 00 1 2 tag\n"), "r.run:1:7: Query '11' has no document '00'.");
  EXPECT_EQ(about_run("10 Q0 GX1 1 2 t\n10 Q0 GX2 1 2 t\n10 Q0 GX1 3 1 t\n"),
            "r.run:3:7: Document 'GX1' of query '10' is already on line 1.");
  EXPECT_EQ(about_run("12 Q0 twin 1 2 t\n"),
            "r.run:1:7: Query '12' has several documents named 'twin', which a run cannot distinguish.");
  EXPECT_EQ(about_run("10 Q0 GX1 1 high t\n"), "r.run:1:13: 'high' is not a number.");
  EXPECT_EQ(about_run("10 Q0 GX1 1 inf t\n"), "r.run:1:13: The scores of a run must be finite.");
}

TEST(TrecRun, ReportsFirstError) {
  EXPECT_EQ(about_run("11 Q0 7 1 2 t\n10 Q0 GX9 1 2 t\n"), "r.run:1:7: Query '11' has no document '7'.");
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
  EXPECT_NE(message_of<DataError>([&] {
              read_scores(TextLines::of_file(folder / "scores.txt"), data());
            }).find("8:1: This score has no document: the data has 7 documents."),
            std::string::npos);
  // The first mistake of the file, whatever comes later.
  write_file_atomically(folder / "a.run", run + "no line of a run\n");
  EXPECT_NE(message_of<DataError>([&] {
              read_trec_run(TextLines::of_file(folder / "a.run"), data());
            }).find("is already on line 1."),
            std::string::npos);
}

TEST(ScoreFiles, AreReadFromDisk) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "scores.txt", "1\n2\n3\n4\n5\n6\n7\n");
  EXPECT_EQ(read_scores(TextLines::of_file(folder / "scores.txt"), data()).scores.size(), 7U);
  write_file_atomically(folder / "a.run", "10 Q0 GX1 1 2 tag\n");
  EXPECT_EQ(read_trec_run(TextLines::of_file(folder / "a.run"), data()).retrieved[0], 1);
  EXPECT_THROW(read_scores(TextLines::of_file(folder / "nothing.txt"), data()), IoError);
}

constexpr double kMissing = -std::numeric_limits<double>::infinity();

std::string about_qrels(const std::string& text) {
  return message_of<DataError>([&] { read_qrels(TextLines::of_memory(text, "q.txt")); });
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
  const Qrels qrels = read_qrels(TextLines::of_memory("1 0 a 2\n1 0 b 0\n2 0 a 1\n3 0 c 1\n", "q.txt"));
  const JudgedRun run = read_judged_run(
      TextLines::of_memory("1 Q0 x 1 9 t\n1 Q0 a 2 8 t\n7 Q0 a 1 1 t\n2 Q0 a 1 3.5 t\n7 Q0 b 2 1 t\n",
                           "r.run"),
      qrels);
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

TEST(JudgedRun, RefusesADocumentThatIsListedTwice) {
  const Qrels qrels = read_qrels(TextLines::of_memory("1 0 a 2\n", "q.txt"));
  EXPECT_EQ(message_of<DataError>(
                [&] { read_judged_run(TextLines::of_memory("1 Q0 x 1 2 t\n1 Q0 x 2 1 t\n", "r"), qrels); }),
            "r:2:6: Document 'x' of query '1' is already listed on line 1.");
  EXPECT_EQ(message_of<DataError>([&] { read_judged_run(TextLines::of_memory("1 Q0 x 1\n", "r"), qrels); }),
            "r:1:9: A line of a run must be 'qid Q0 docno rank score tag', but this line has 4 fields.");
}

}  // namespace
}  // namespace olrank
