#include "report/final_measures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/statistics/t_tests.h"

namespace olrank {
namespace {

TEST(PairedComparison, IsCorrectedWithItsFamily) {
  std::vector<PairedComparison> pairs = {compared(0, 1, {{0.1, 0.2, 0.15}}, "ndcg"),
                                         compared(0, 2, {{0.3, 0.31, 0.32}}, "ndcg"),
                                         compared(1, 2, {{0.2}}, "ndcg")};
  EXPECT_FALSE(pairs[1].significant());  // not before the correction
  correct(pairs);
  const std::vector<double> t_holm =
      holm_adjusted(std::vector<double>{pairs[0].test.t_p, pairs[1].test.t_p, pairs[2].test.t_p});
  EXPECT_EQ(pairs[0].t_holm, t_holm[0]);
  EXPECT_EQ(pairs[1].t_holm, t_holm[1]);
  EXPECT_EQ(pairs[0].flip_holm, 0.5);  // a quarter of the sign patterns, twice
  EXPECT_TRUE(pairs[1].significant());
  EXPECT_FALSE(pairs[2].tested());  // one difference
  EXPECT_FALSE(pairs[2].significant());
  EXPECT_TRUE(std::isnan(pairs[2].deviation()));
}

TEST(PairedComparison, IsFoundAndReadInEitherOrder) {
  const std::vector<PairedComparison> pairs = {compared(0, 2, {{0.1, 0.3}})};
  const PairedComparison* pair = comparison_of(pairs, 2, 0);
  ASSERT_EQ(pair, &pairs[0]);
  EXPECT_EQ(comparison_of(pairs, 0, 1), nullptr);
  EXPECT_EQ(pair->difference_of(0).mean, 0.2);
  EXPECT_EQ(pair->difference_of(2).mean, -0.2);
  EXPECT_TRUE(std::isnan(pair->test.flip_p));  // Student's test alone
}

TEST(BestOf, IsTheFirstOfEqualMeansAndSkipsNaN) {
  const std::vector<double> means = {std::nan(""), 0.2, 0.4, 0.4, 0.1};
  EXPECT_EQ(best_of(means, true), 2U);
  EXPECT_EQ(best_of(means, false), 4U);
  EXPECT_EQ(best_of(std::vector<double>{std::nan("")}, true), 1U);
}

}  // namespace
}  // namespace olrank
