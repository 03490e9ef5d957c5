#include "core/data/letor_parser.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/core/data/letor_support.h"
#include "tests/support/expected_warnings.h"

namespace olrank {
namespace {

std::vector<float> row(const Dataset& data, std::int64_t doc) {
  const auto values = data.all_features().doc(doc);
  return {values.begin(), values.end()};
}

TEST(LetorParser, ReadsUsualLine) {
  const Dataset data = read_text("2 qid:10 1:0.5 2:-3 3:1e2 #docid = GX-1 inc = 1 prob = 0.08\n");
  ASSERT_EQ(data.docs(), 1);
  EXPECT_EQ(data.features(), 3);
  EXPECT_EQ(data.qid(0), "10");
  EXPECT_EQ(data.doc_name(0), "GX-1");
  EXPECT_EQ(data.all_grades()[0], 2);
  EXPECT_EQ(row(data, 0), (std::vector<float>{0.5F, -3.0F, 100.0F}));
}

TEST(LetorParser, AcceptsUnusualButValidLines) {
  const Dataset data = read_text(
      "\xEF\xBB\xBF# a heading\r\n"
      "\n"
      "  2.0\tqid:a  5:1\t2:+7 \r\n"
      "0. qid:a 1:1#docid=x\n"
      "+1 qid:b#  docid  =  y z\n"
      " \t \n"
      "31 qid:b 1:-0 5:.5 # docids = no, mydocid = no\r\r\n"
      "1.000 qid:c");
  ASSERT_EQ(data.docs(), 5);
  EXPECT_EQ(data.features(), 5);
  EXPECT_EQ(row(data, 0), (std::vector<float>{0, 7, 0, 0, 1}));
  EXPECT_EQ(row(data, 1), (std::vector<float>{1, 0, 0, 0, 0}));
  EXPECT_EQ(row(data, 2), (std::vector<float>(5, 0.0F)));
  EXPECT_EQ(row(data, 3), (std::vector<float>{-0.0F, 0, 0, 0, 0.5F}));
  EXPECT_TRUE(std::signbit(row(data, 3)[0]));
  EXPECT_EQ(data.doc_name(0), "");
  EXPECT_EQ(data.doc_name(1), "x");
  EXPECT_EQ(data.doc_name(2), "y");
  EXPECT_EQ(data.doc_name(3), "");
  EXPECT_EQ(data.max_grade(), 31);
  EXPECT_EQ(data.queries(), 3);
}

TEST(LetorParser, GroupsQueriesInOrderOfFirstAppearance) {
  const Dataset data = read_text(
      "0 qid:b 1:1 # docid = 1\n1 qid:a 1:2\n2 qid:b 1:3 # docid = 3\n3 qid:c 1:4\n4 qid:a 1:5 # docid = "
      "5\n");
  ASSERT_EQ(data.queries(), 3);
  EXPECT_EQ(data.qid(0), "b");
  EXPECT_EQ(data.qid(1), "a");
  EXPECT_EQ(data.qid(2), "c");
  std::vector<float> values;
  std::string names;
  for (std::int64_t doc = 0; doc < data.docs(); ++doc) {
    values.push_back(row(data, doc)[0]);
    EXPECT_EQ(data.all_grades()[doc], values.back() - 1);
    names += std::string(data.doc_name(doc)) + ",";
  }
  EXPECT_EQ(values, (std::vector<float>{1, 3, 2, 5, 4}));
  EXPECT_EQ(names, "1,3,,5,,");
}

TEST(LetorParser, SortsFeaturesOfLine) {
  const Dataset data = read_text("0 qid:1 9:9 1:1 4:4 3:3\n");
  EXPECT_EQ(row(data, 0), (std::vector<float>{1, 0, 3, 4, 0, 0, 0, 0, 9}));
}

TEST(LetorParser, CountsMissingValuesInOneWarning) {
  const ExpectedWarnings warnings;
  const Dataset data = read_text("0 qid:1 1:1 2:NULL\n0 qid:1 2:NULL 1:NULL\n0 qid:1 3:1 1:2\n");
  EXPECT_EQ(row(data, 0), (std::vector<float>{1, 0, 0}));
  EXPECT_EQ(row(data, 1), (std::vector<float>{0, 0, 0}));
  ASSERT_EQ(warnings.messages().size(), 1U);
  EXPECT_EQ(warnings.messages()[0],
            "data.txt:1:15: 3 values are NULL and are read as 0; this is the first.");
}

struct BadText {
  const char* text;
  std::int64_t line;
  std::int64_t column;
  const char* message;
};

TEST(LetorParser, ErrorsHaveReasonLineAndColumn) {
  const BadText texts[] = {
      {"x qid:1 1:1\n", 1, 1, "grade 'x' is not a number"},
      {"\n 1.5 qid:1 1:1\n", 2, 2, "grade '1.5' is not an integer"},
      {"-1 qid:1 1:1\n", 1, 1, "grade '-1' is negative"},
      {"32 qid:1 1:1\n", 1, 1, "grade '32' is too large"},
      {"99999999999999999999 qid:1 1:1\n", 1, 1, "is too large"},
      {"nan qid:1 1:1\n", 1, 1, "grade 'nan' is not finite"},
      {"Infinity qid:1 1:1\n", 1, 1, "is not finite"},
      {"1e0 qid:1 1:1\n", 1, 1, "is not an integer"},
      {"1\n", 1, 2, "The line ends after the grade"},
      {"1 1:1\n", 1, 3, "must follow the grade, not '1:1'"},
      {"1 qid: 1:1\n", 1, 7, "The query ID after 'qid:' is missing"},
      {"0 qid:1 1:1\n0 qid:1 a:1\n", 2, 9, "Expected a feature as number:value, not 'a:1'"},
      {"0 qid:1 1:1 0:1\n", 1, 13, "feature number of '0:1' must be between 1 and 4294967295"},
      {"0 qid:1 -1:1\n", 1, 9, "must be between 1 and 4294967295"},
      {"0 qid:1 4294967296:1\n", 1, 9, "must be between 1 and 4294967295"},
      {"0 qid:1 4294967297:1\n", 1, 9, "must be between 1 and 4294967295"},
      {"0 qid:1 99999999999999999999999:1\n", 1, 9, "must be between 1 and 4294967295"},
      {"0 qid:1 1:1 7\n", 1, 14, "must be followed by a colon and a value"},
      {"0 qid:1 1:\n", 1, 11, "The value after the colon is missing"},
      {"0 qid:1 1: 2:1\n", 1, 11, "The value after the colon is missing"},
      {"0 qid:1 1:abc\n", 1, 11, "value 'abc' is not a number"},
      {"0 qid:1 1:1x\n", 1, 11, "value '1x' is not a number"},
      {"0 qid:1 1:1,5\n", 1, 11, "is not a number"},
      {"0 qid:1 1:nan\n", 1, 11, "value 'nan' is not finite"},
      {"0 qid:1 1:-Inf\n", 1, 11, "is not finite"},
      {"0 qid:1 1:1e39\n", 1, 11, "too large for a 32-bit float"},
      {"0 qid:1 1:1 2:2 1:3\n", 1, 17, "Feature 1 appears twice"},
      {"0 qid:1 3:1 2:2 2:3 3:1\n", 1, 17, "Feature 2 appears twice"},
      {"0 qid:1 1:NULLX\n", 1, 11, "is not a number"},
      {"0 qid:1 1:1\r2:2\n", 1, 11, "'1\\x0d2:2' is not a number"},
      {"", 1, 1, "The file contains no document"},
      {"# only\n\n", 1, 1, "The file contains no document"},
      {"0 qid:1\n", 1, 1, "No document in the file has a feature"},
      {"\xFF\xFE"
       "0",
       1, 1, "UTF-16"},
  };
  for (const BadText& bad : texts) {
    try {
      read_text(bad.text);
      ADD_FAILURE() << bad.text << " was accepted";
    } catch (const DataError& error) {
      EXPECT_EQ(error.line(), bad.line) << error.what();
      EXPECT_EQ(error.column(), bad.column) << error.what();
      EXPECT_NE(std::string(error.what()).find(bad.message), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).rfind("data.txt:", 0), 0U) << error.what();
    }
  }
}

}  // namespace
}  // namespace olrank
