#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/statistics/hierarchical_bootstrap.h"
#include "core/statistics/least_squares.h"
#include "core/statistics/t_tests.h"

namespace olrank {
namespace {

TEST(IncompleteBeta, MatchesPolynomialCases) {
  for (double x = 0.0; x <= 1.0; x += 0.05) {
    EXPECT_NEAR(regularised_incomplete_beta(1.0, 1.0, x), x, 1e-14);
    EXPECT_NEAR(regularised_incomplete_beta(2.0, 3.0, x), x * x * (6.0 - 8.0 * x + 3.0 * x * x), 1e-14);
  }
  for (const double a : {0.3, 1.0, 7.5, 400.0}) {
    EXPECT_NEAR(regularised_incomplete_beta(a, a, 0.5), 0.5, 1e-12) << a;
  }
  EXPECT_TRUE(std::isnan(regularised_incomplete_beta(0.0, 1.0, 0.5)));
  EXPECT_TRUE(std::isnan(regularised_incomplete_beta(1.0, 1.0, 1.5)));
}

TEST(StudentT, QuantilesMatchTables) {
  struct Row {
    double probability, freedom, quantile;
  };
  // Printed with five significant decimals, as in Fisher and Yates' table III and its successors.
  for (const Row& row : {Row{0.975, 1, 12.70620}, Row{0.975, 2, 4.30265}, Row{0.975, 4, 2.77645},
                         Row{0.975, 9, 2.26216}, Row{0.975, 30, 2.04227}, Row{0.975, 120, 1.97993},
                         Row{0.95, 5, 2.01505}, Row{0.995, 10, 3.16927}, Row{0.9995, 3, 12.92398}}) {
    EXPECT_NEAR(student_t_quantile(row.probability, row.freedom), row.quantile, 6e-6) << row.freedom;
    EXPECT_NEAR(student_t_quantile(1.0 - row.probability, row.freedom), -row.quantile, 6e-6);
  }
  EXPECT_NEAR(student_t_quantile(0.5, 3), 0.0, 1e-12);
}

TEST(StudentT, MatchesClosedFormsForOneAndTwoDegreesOfFreedom) {
  for (const double t : {0.0, 0.1, 1.0, 2.5, 40.0}) {
    EXPECT_NEAR(student_t_two_sided(t, 1), 1.0 - 2.0 * std::atan(t) / M_PI, 1e-13) << t;
    EXPECT_NEAR(student_t_two_sided(-t, 2), 1.0 - t / std::sqrt(2.0 + t * t), 1e-13) << t;
  }
  EXPECT_EQ(student_t_two_sided(INFINITY, 4), 0.0);
}

TEST(MeanInterval, OverOneFoldIsOverItsSeeds) {
  // Student's sleep data (Biometrika 1908): 0.7001142 to 2.4598858.
  const MeanInterval interval = mean_interval({{1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4}});
  EXPECT_NEAR(interval.mean, 1.58, 1e-12);
  EXPECT_NEAR(interval.mean - interval.half_width, 0.7001142, 1e-7);
  EXPECT_NEAR(interval.mean + interval.half_width, 2.4598858, 1e-7);
  EXPECT_EQ(interval.units, 10U);
  EXPECT_FALSE(interval.over_folds);
}

TEST(MeanInterval, OverSeveralFoldsIsOverTheirTrials) {
  const FoldedValues values = {{1.0, 3.0}, {4.0}, {}, {5.0, 6.0, 10.0}};
  const MeanInterval folded = mean_interval(values);
  const MeanInterval of_trials = mean_interval({{1.0, 3.0, 4.0, 5.0, 6.0, 10.0}});
  EXPECT_DOUBLE_EQ(folded.mean, of_trials.mean);
  EXPECT_DOUBLE_EQ(folded.half_width, of_trials.half_width);
  EXPECT_EQ(independent_values(values), (std::vector<double>{2.0, 4.0, 7.0}));
  EXPECT_EQ(folded.values, 6U);
  EXPECT_EQ(folded.units, 3U);
  EXPECT_TRUE(folded.over_folds);
}

TEST(MeanInterval, NeedsTwoValues) {
  const MeanInterval one = mean_interval({{0.25}});
  EXPECT_EQ(one.mean, 0.25);
  EXPECT_TRUE(std::isnan(one.half_width));
  EXPECT_TRUE(std::isnan(mean_interval({}).mean));
  EXPECT_EQ(mean_interval({{0.5, 0.5, 0.5}}).half_width, 0.0);
}

TEST(Holm, MatchesPublishedExample) {
  // R's p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
  const std::vector<double> adjusted = holm_adjusted(std::vector{0.01, 0.04, 0.03, 0.005});
  const std::vector<double> expected = {0.03, 0.06, 0.06, 0.02};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-15);
}

TEST(Holm, IgnoresNanAndCapsAtOne) {
  const std::vector<double> adjusted = holm_adjusted(std::vector{0.4, std::nan(""), 0.9});
  EXPECT_NEAR(adjusted[0], 0.8, 1e-15);
  EXPECT_TRUE(std::isnan(adjusted[1]));
  EXPECT_NEAR(adjusted[2], 0.9, 1e-15);
  EXPECT_EQ(holm_adjusted(std::vector{0.7, 0.8}), (std::vector{1.0, 1.0}));
}

TEST(SortedQuantile, InterpolatesBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(sorted_quantile({0.0, 1.0, 2.0, 3.0}, 0.1), 0.3);
  EXPECT_DOUBLE_EQ(sorted_quantile({0.0, 1.0, 2.0, 4.0}, 0.9), 3.4);
  EXPECT_EQ(sorted_quantile({0.5}, 0.1), 0.5);
}

TEST(CurveArea, IsTheMeanHeight) {
  EXPECT_DOUBLE_EQ(curve_area(std::vector{0.0, 10.0, 30.0}, std::vector{0.0, 1.0, 1.0}), 25.0 / 30.0);
  EXPECT_DOUBLE_EQ(curve_area(std::vector{5.0, 7.0}, std::vector{0.25, 0.25}), 0.25);
  EXPECT_EQ(curve_area(std::vector{3.0}, std::vector{0.5}), 0.5);
  EXPECT_TRUE(std::isnan(curve_area({}, {})));
}

}  // namespace
}  // namespace olrank
