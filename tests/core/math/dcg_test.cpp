#include "core/math/dcg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace olrank {
namespace {

TEST(DcgTest, MatchesLongDoubleFormulas) {
  for (int grade = 0; grade <= kHighestGrade; ++grade) {
    const long double exponential = std::exp2(static_cast<long double>(grade)) - 1.0L;
    EXPECT_EQ(dcg_gain(grade, Gain::kExponential), static_cast<double>(exponential));
    EXPECT_EQ(dcg_gain(grade, Gain::kLinear), grade);
    EXPECT_EQ(err_satisfaction(grade, kHighestGrade),
              static_cast<double>(exponential / std::exp2(static_cast<long double>(kHighestGrade))));
  }
  for (const std::int64_t rank : {0, 1, 2, 9, 1000, 1'000'000}) {
    const auto place = static_cast<long double>(rank);
    EXPECT_NEAR(dcg_discount(rank, Discount::kLog2), static_cast<double>(1.0L / std::log2(place + 2.0L)),
                1e-15);
    EXPECT_NEAR(dcg_discount(rank, Discount::kLetor),
                rank < 2 ? 1.0 : static_cast<double>(1.0L / std::log2(place + 1.0L)), 1e-15);
  }
}

TEST(NdcgChangeTest, KnowsItsEdges) {
  EXPECT_EQ(ndcg_change(0.0, 1.0, 0.5, 2.0), 0.0);
  EXPECT_EQ(ndcg_change(3.0, 0.5, 0.5, 2.0), 0.0);
  EXPECT_EQ(ndcg_change(kClickGain, 1.0, 0.5, 2.0), 0.25);
  EXPECT_EQ(ndcg_change(kClickGain, 0.5, 1.0, 2.0), 0.25);
  EXPECT_TRUE(std::isnan(ndcg_change(1.0, std::numeric_limits<double>::quiet_NaN(), 0.5, 2.0)));
  EXPECT_EQ(dcg_gain(1, Gain::kExponential), kClickGain);
}

}  // namespace
}  // namespace olrank
