#include "core/text/text_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace olrank {
namespace {

TEST(Csv, QuotesOnlyFieldsThatNeedIt) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_field("carriage\rreturn"), "\"carriage\rreturn\"");
}

TEST(Csv, WritesNumbersThatReadBackExactly) {
  EXPECT_EQ(csv_number(0.1), "0.1");
  EXPECT_EQ(csv_number(1.0 / 3.0), "0.3333333333333333");
}

TEST(Csv, LeavesFieldsWithoutAFiniteValueEmpty) {
  EXPECT_EQ(csv_number(std::numeric_limits<double>::quiet_NaN()), "");
  EXPECT_EQ(csv_number(std::numeric_limits<double>::infinity()), "");
  EXPECT_EQ(csv_number(std::optional<double>()), "");
  EXPECT_EQ(csv_number(std::optional<std::int64_t>(151234)), "151234");
}

TEST(Csv, SplitsLines) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> lines = {
      {"a,b", {"a", "b"}},
      {"", {""}},
      {"a,,c,\r", {"a", "", "c", ""}},
      {"\"a,b\",\"say \"\"x\"\"\",\"\"", {"a,b", "say \"x\"", ""}}};
  std::vector<std::string> fields;
  for (const auto& [line, expected] : lines) {
    EXPECT_EQ(split_csv(line, fields), "") << line;
    EXPECT_EQ(fields, expected) << line;
  }
}

TEST(Csv, ReadsTheFieldsThatItWrites) {
  std::vector<std::string> fields;
  for (const std::string text : {"plain", "a,b", "say \"x\"", "\"", ""}) {
    EXPECT_EQ(split_csv(csv_field(text) + "," + csv_field(text), fields), "");
    EXPECT_EQ(fields, (std::vector<std::string>{text, text}));
  }
}

TEST(Csv, SaysWhichFieldIsBroken) {
  std::vector<std::string> fields;
  EXPECT_EQ(split_csv("a,\"two", fields), "Field 2 begins with a quote that does not end on this line.");
  EXPECT_EQ(split_csv("\"a\"b", fields), "Field 1 goes on after its closing quote.");
  EXPECT_NE(split_csv("a,b\"c\"", fields).find("Field 2 has a quote within"), std::string::npos);
}

}  // namespace
}  // namespace olrank
