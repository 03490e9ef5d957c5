#include "core/text/csv.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

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

}  // namespace
}  // namespace olrank
