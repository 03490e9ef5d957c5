#include "core/ops/inverse_covariance.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <vector>

#include "tests/core/ops/network_fixture.h"

namespace olrank {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Sizes on both sides of a tile of 256 parameters and of a block of 128 pairs.
TEST(InverseCovarianceTest, MatchesEigenWhenUpdatedAndWhenRebuilt) {
  for (const NetworkShape& shape : {linear_shape(7), ntk_shape(5, 6, 3), ntk_shape(13, 34, 2),
                                    standard_shape(16, 18, 2), ntk_shape(7, 32, 2)}) {
    const std::int64_t p = shape.parameters();
    for (const std::int64_t pairs : {0, 1, 5, 140}) {
      const std::vector<float> factors = random_factors(shape, 2 * pairs, 74);
      const TangentFactors history = view_of(shape, factors);
      const Eigen::MatrixXd g = slow_pair_gradients(shape, history);
      const double scale = 0.05;
      const RowMajor a = 2.0 * RowMajor::Identity(p, p) + scale * g.transpose() * g;
      const Eigen::LLT<Eigen::MatrixXd> factor(a);
      const RowMajor expected = factor.solve(Eigen::MatrixXd::Identity(p, p));
      const double log_det = 2.0 * Eigen::MatrixXd(factor.matrixL()).diagonal().array().log().sum() -
                             static_cast<double>(p) * std::log(2.0);
      ExecutionContext context(2);
      RowMajor updated(p, p);
      set_inverse_covariance(p, 2.0, updated.data());
      const double grown = update_inverse_covariance(context, shape, history, scale, updated.data());
      RowMajor built = RowMajor::Constant(p, p, 9.0);
      const double whole = inverse_covariance_of(context, shape, history, 2.0, scale, built.data());
      // A's condition is below 1e5 here, and entries of A⁻¹ at most 1/2: 1e5 · 1e-16 with room for sums.
      EXPECT_LE((updated - expected).cwiseAbs().maxCoeff(), 1e-10);
      EXPECT_LE((built - expected).cwiseAbs().maxCoeff(), 1e-10);
      EXPECT_EQ(updated, RowMajor(updated.transpose()));
      EXPECT_EQ(built, RowMajor(built.transpose()));
      EXPECT_NEAR(grown, log_det, 1e-10 * (1.0 + log_det));
      EXPECT_NEAR(whole, log_det, 1e-10 * (1.0 + log_det));

      const std::vector<float> doc_factors = random_factors(shape, 33, 75);
      const Eigen::MatrixXd docs = slow_gradients(shape, view_of(shape, doc_factors));
      RowMajor m(33, 33);
      inverse_covariance_gram(context, shape, view_of(shape, doc_factors), scale, built.data(), m.data());
      const RowMajor slow = scale * docs * expected * docs.transpose();
      EXPECT_LE((m - slow).cwiseAbs().maxCoeff(), 1e-9 * slow.cwiseAbs().maxCoeff());
    }
  }
}

}  // namespace
}  // namespace olrank
