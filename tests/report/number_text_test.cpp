#include "report/markup.h"

#include <gtest/gtest.h>

#include <cmath>

namespace olrank {
namespace {

TEST(ShortNumber, RoundsAndGroupsDigits) {
  EXPECT_EQ(short_number(0.123456), "0.1235");
  EXPECT_EQ(short_number(1538400.0), "1,538,400");
  EXPECT_EQ(short_number(-12345.0), "−12,345");
  EXPECT_EQ(short_number(-0.5), "−0.5");
  EXPECT_EQ(short_number(std::nan("")), "none");
}

TEST(FixedNumber, HasTheDigitsAskedForAndATrueMinus) {
  EXPECT_EQ(fixed_number(0.49136, 4), "0.4914");
  EXPECT_EQ(fixed_number(-0.0042, 4), "−0.0042");
  EXPECT_EQ(fixed_number(-0.00001, 4), "0.0000");
  EXPECT_EQ(fixed_number(1234567.25, 1), "1,234,567.2");
  EXPECT_EQ(fixed_number(-123456.0, 0), "−123,456");
  EXPECT_EQ(fixed_number(-123.0, 0), "−123");
  EXPECT_EQ(fixed_number(999.0, 0), "999");
  EXPECT_EQ(fixed_number(std::nan(""), 2), "–");
}

TEST(EstimateText, HasAnIntervalIfThereIsOne) {
  EXPECT_EQ(estimate_text(mean_interval({{1.0, 3.0}}), 1), "2.0 ± 12.7");
  EXPECT_EQ(estimate_text(mean_interval({{1.0}}), 1), "1.0");
}

}  // namespace
}  // namespace olrank
