#include "core/metrics/score_files.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/error.h"
#include "core/io/atomic_file.h"
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
  return message_of<DataError>([&] { parse_scores(text, "s.txt", data()); });
}

std::string about_run(const std::string& text) {
  return message_of<DataError>([&] { parse_trec_run(text, "r.run", data()); });
}

TEST(Scores, AreOneNumberPerLine) {
  const ExternalScores read =
      parse_scores("# by hand\n1\r\n\t-2.5e-3 \n\n+3\n  # more\n4.\n-inf\n   \n6\n7", "s.txt", data());
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
  const ExternalScores run =
      parse_trec_run("11 Q0 1 1 0.5 tag\r\n\n10 Q0 GX3 9 -1e2 tag\n 10\tQ0 GX1 1 7 tag\n11 Q0 0 1 0.5 tag",
                     "r.run", data());
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
  EXPECT_EQ(message_of<DataError>([] { read_scores("/dev/zero", data()); }),
            "/dev/zero:1:2097153: The line is longer than 1.0 MB.");
  EXPECT_EQ(message_of<DataError>([] { read_trec_run("/dev/zero", data()); }),
            "/dev/zero:1:2097153: The line is longer than 1.0 MB.");
  const TemporaryFolder folder;
  std::string text = "1\n2\n3\n4\n5\n6\n7\n8\n";
  std::string run = "10 Q0 GX1 1 2 tag\n10 Q0 GX1 1 2 tag\n";
  for (int block = 0; block < 5; ++block) text += std::string(1 << 20, '\n');
  write_file_atomically(folder / "scores.txt", text + "no number\n");
  EXPECT_NE(message_of<DataError>([&] {
              read_scores(folder / "scores.txt", data());
            }).find("8:1: This score has no document: the data has 7 documents."),
            std::string::npos);
  // The first mistake of the file, whatever comes later.
  write_file_atomically(folder / "a.run", run + "no line of a run\n");
  EXPECT_NE(
      message_of<DataError>([&] { read_trec_run(folder / "a.run", data()); }).find("is already on line 1."),
      std::string::npos);
}

TEST(ScoreFiles, AreReadFromDisk) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "scores.txt", "1\n2\n3\n4\n5\n6\n7\n");
  EXPECT_EQ(read_scores(folder / "scores.txt", data()).scores.size(), 7U);
  write_file_atomically(folder / "a.run", "10 Q0 GX1 1 2 tag\n");
  EXPECT_EQ(read_trec_run(folder / "a.run", data()).retrieved[0], 1);
  EXPECT_THROW(read_scores(folder / "nothing.txt", data()), IoError);
}

}  // namespace
}  // namespace olrank
