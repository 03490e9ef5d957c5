#include "core/ops/diagonal_covariance.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <vector>

#include "tests/core/ops/network_fixture.h"

namespace olrank {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

TEST(DiagonalCovarianceTest, MatchesWrittenOutGradients) {
  std::vector<NetworkShape> shapes = test_shapes();
  shapes.push_back(standard_shape(70, 90, 2));  // more parameters than one block has
  for (const NetworkShape& shape : shapes) {
    const std::int64_t p = shape.parameters();
    const std::vector<float> pairs = random_factors(shape, 12, 76);
    const Eigen::MatrixXd g = slow_pair_gradients(shape, view_of(shape, pairs));
    ExecutionContext context(2);
    std::vector<double> diagonal(p, 0.5);
    add_to_diagonal(context, shape, view_of(shape, pairs), 0.25, diagonal);
    const Eigen::VectorXd expected = 0.25 * g.colwise().squaredNorm().transpose();
    for (std::int64_t k = 0; k < p; ++k) {
      EXPECT_NEAR(diagonal[k], 0.5 + expected[k], 1e-14 * (1.0 + expected[k]));
    }
    for (const std::int64_t count : {0, 1, 31, 32, 33, 100}) {
      std::vector<float> factors = random_factors(shape, count, 77);
      // A unit that is dead for all documents, and one that is alive for all.
      const NetworkLayer layer = shape.layer(0);
      for (std::int64_t doc = 0; doc < count; ++doc) {
        factors[doc * shape.factors() + layer.delta] = 0.0F;
        if (layer.rows > 1) factors[doc * shape.factors() + layer.delta + 1] = 1.5F;
      }
      const Eigen::MatrixXd docs = slow_gradients(shape, view_of(shape, factors));
      RowMajor m = RowMajor::Constant(count, count, -1.0);
      diagonal_gram(context, shape, view_of(shape, factors), 0.25, diagonal, m.data());
      const RowMajor slow = 0.25 * docs *
                            Eigen::Map<const Eigen::VectorXd>(diagonal.data(), p).asDiagonal() *
                            docs.transpose();
      const double size = count == 0 ? 0.0 : slow.diagonal().maxCoeff();
      for (std::int64_t i = 0; i < count; ++i) {
        // Sums of up to 6,500 terms whose absolute values add up to no more than the diagonal's.
        for (std::int64_t j = 0; j <= i; ++j) EXPECT_TRUE(std::abs(m(i, j) - slow(i, j)) <= 1e-13 * size);
      }
    }
  }
}

}  // namespace
}  // namespace olrank
