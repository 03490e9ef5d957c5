#include "core/ops/largest_curvature.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/core/ops/network_fixture.h"

namespace olrank {
namespace {

TEST(LargestCurvatureTest, IsAQuarterOfTheLargestEigenvalue) {
  for (const NetworkShape& shape : test_shapes()) {
    const std::vector<PairTerm> terms = random_terms(30, 50);
    const std::vector<float> factors = random_factors(shape, 30, 65);
    const TangentFactors docs = view_of(shape, factors);
    const Eigen::MatrixXd g = slow_gradients(shape, docs);
    Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(shape.parameters(), shape.parameters());
    for (const PairTerm& term : terms) {
      const Eigen::VectorXd difference = g.row(term.first) - g.row(term.second);
      sum += term.weight * difference * difference.transpose();
    }
    const double expected =
        Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(sum).eigenvalues().maxCoeff() / 4.0;
    ExecutionContext context;
    std::vector<double> vector(shape.parameters(), 0.0);
    const double rough = largest_curvature(context, shape, docs, terms, vector);
    // A Rayleigh quotient is never above; where it has settled to 1e-3 an iteration, it can still be some
    // percent below.
    EXPECT_LE(rough, expected * (1.0 + 1e-12));
    EXPECT_GE(rough, expected * 0.9);
    // From where it stopped, with a bound that only rounding meets.
    const double fine = largest_curvature(context, shape, docs, terms, vector, 1e-13, 20000);
    EXPECT_NEAR(fine, expected, 1e-6 * expected);
    EXPECT_EQ(largest_curvature(context, shape, docs, {}, vector), 0.0);
  }
}

}  // namespace
}  // namespace olrank
