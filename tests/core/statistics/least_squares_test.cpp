#include "core/statistics/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace olrank {
namespace {

TEST(LeastSquares, RecoversAPlantedPlane) {
  std::vector<double> y;
  std::vector<std::vector<double>> x(2);
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 3; ++b) {
      if (a == 3 && b == 2) continue;  // a grid with a hole: the columns correlate
      x[0].push_back(0.5 * a);
      x[1].push_back(100.0 + b * b);
      y.push_back(3.0 - 0.25 * x[0].back() + 2.0 * x[1].back());
    }
  }
  const std::vector<double> found = fit_least_squares(y, x);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NEAR(found[0], 3.0, 1e-9);
  EXPECT_NEAR(found[1], -0.25, 1e-10);
  EXPECT_NEAR(found[2], 2.0, 1e-10);
}

TEST(LeastSquares, LeavesResidualsThatNoColumnExplains) {
  const std::vector<double> y = {1.0, 4.0, 2.0, 8.0, 5.0, 7.0};
  const std::vector<std::vector<double>> x = {{0.0, 1.0, 2.0, 3.0, 4.0, 5.0},
                                              {1.0, 0.0, 1.0, 2.0, 5.0, 3.0}};
  const std::vector<double> c = fit_least_squares(y, x);
  double sums[3] = {};
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double left = y[i] - c[0] - c[1] * x[0][i] - c[2] * x[1][i];
    sums[0] += left;
    sums[1] += left * x[0][i];
    sums[2] += left * x[1][i];
  }
  for (const double sum : sums) EXPECT_NEAR(sum, 0.0, 1e-12);
}

TEST(LeastSquares, IsNanWhereThePointsDoNotDecide) {
  const std::vector<double> two = {1.0, 2.0};
  for (const double value : fit_least_squares(two, {{1.0, 2.0}, {2.0, 1.0}}))
    EXPECT_TRUE(std::isnan(value));
  const std::vector<double> three = {1.0, 2.0, 4.0};
  for (const double value : fit_least_squares(three, {{1.0, 2.0, 3.0}, {2.0, 4.0, 6.0}}))
    EXPECT_TRUE(std::isnan(value));
  for (const double value : fit_least_squares(three, {{5.0, 5.0, 5.0}})) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace olrank
