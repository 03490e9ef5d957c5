#include "core/ops/tangent_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/core/ops/network_fixture.h"

namespace olrank {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Inner products of p terms are off by at most p · 1e-16 of ‖g‖‖g'‖; p is below 1,400 here.
void expect_products(const RowMajor& actual, const Eigen::MatrixXd& left, const Eigen::MatrixXd& right,
                     double scale, double left_norm, double right_norm) {
  const Eigen::MatrixXd expected = scale * left * right.transpose();
  ASSERT_EQ(actual.rows(), expected.rows());
  ASSERT_EQ(actual.cols(), expected.cols());
  const double tolerance = 1e-13 * scale * left_norm * right_norm;
  for (std::int64_t i = 0; i < expected.rows(); ++i) {
    for (std::int64_t j = 0; j < expected.cols(); ++j) {
      EXPECT_TRUE(std::abs(actual(i, j) - expected(i, j)) <= tolerance) << i << ", " << j;
    }
  }
}

TEST(TangentKernelTest, MatchesProductsOfGradients) {
  for (const NetworkShape& shape : test_shapes()) {
    for (const std::int64_t docs : {1, 33, 130}) {
      for (const std::int64_t pairs : {0, 1, 64, 70}) {
        const std::vector<float> doc_factors = random_factors(shape, docs, 20);
        const std::vector<float> pair_factors = random_factors(shape, 2 * pairs, 21);
        const std::vector<float> other_factors = random_factors(shape, 6, 22);
        const TangentFactors left = view_of(shape, pair_factors);
        const TangentFactors right = view_of(shape, doc_factors);
        const TangentFactors others = view_of(shape, other_factors);
        const Eigen::MatrixXd g = slow_gradients(shape, right);
        const Eigen::MatrixXd g_pairs = slow_pair_gradients(shape, left);
        const Eigen::MatrixXd g_others = slow_pair_gradients(shape, others);
        const double norm = g.rowwise().norm().maxCoeff();
        const double pair_norm =
            pairs == 0 ? 0.0 : 2.0 * slow_gradients(shape, left).rowwise().norm().maxCoeff();
        const double other_norm = 2.0 * slow_gradients(shape, others).rowwise().norm().maxCoeff();
        for (const int threads : {1, 2}) {
          ExecutionContext context(threads);
          RowMajor kernel(docs, docs);
          doc_kernel(context, shape, right, 0.3, kernel.data());
          expect_products(kernel, g, g, 0.3, norm, norm);
          RowMajor wide = RowMajor::Constant(pairs, docs + 2, -1.0);
          pair_doc_kernel(context, shape, left, right, 0.3, wide.data(), docs + 2);
          expect_products(wide.leftCols(docs), g_pairs, g, 0.3, pair_norm, norm);
          EXPECT_TRUE((wide.rightCols(2).array() == -1.0).all());
          RowMajor among(pairs, 3);
          pair_kernel(context, shape, left, others, 0.3, among.data(), 3);
          expect_products(among, g_pairs, g_others, 0.3, pair_norm, other_norm);
        }
      }
    }
  }
}

}  // namespace
}  // namespace olrank
