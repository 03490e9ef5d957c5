#include "core/ops/gradient_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/core/ops/network_fixture.h"

namespace olrank {
namespace {

TEST(GradientProductsTest, MatchesWrittenOutGradients) {
  for (const NetworkShape& shape : test_shapes()) {
    for (const std::int64_t docs : {1, 33, 300}) {
      const std::vector<float> factors = random_factors(shape, docs, 14);
      const Eigen::MatrixXd gradients = slow_gradients(shape, view_of(shape, factors));
      const std::vector<float> numbers = random_numbers(shape.parameters() + docs, 15);
      const std::vector<double> v(numbers.begin(), numbers.begin() + shape.parameters());
      const std::vector<double> weights(numbers.begin() + shape.parameters(), numbers.end());
      const Eigen::VectorXd expected_products =
          gradients * Eigen::Map<const Eigen::VectorXd>(v.data(), shape.parameters());
      const Eigen::VectorXd expected_sum =
          gradients.transpose() * Eigen::Map<const Eigen::VectorXd>(weights.data(), docs);
      for (const int threads : {1, 3}) {
        ExecutionContext context(threads);
        std::vector<double> products(weights.size());
        gradient_products(context, shape, view_of(shape, factors), v, products);
        std::vector<double> sum(v.size());
        gradient_sum(context, shape, view_of(shape, factors), weights, sum);
        // Sums of up to 1,500 double products: 1,500 · 1e-16 of the absolute terms, generously.
        for (std::int64_t i = 0; i < docs; ++i) {
          const double scale = gradients.row(i).norm() * std::sqrt(static_cast<double>(v.size()));
          EXPECT_TRUE(std::abs(products[i] - expected_products[i]) <= 1e-12 * scale);
        }
        for (std::int64_t k = 0; k < shape.parameters(); ++k) {
          const double scale = 1e-6 + gradients.col(k).norm() * std::sqrt(static_cast<double>(docs));
          EXPECT_TRUE(std::abs(sum[k] - expected_sum[k]) <= 1e-12 * scale);
        }
      }
    }
  }
}

}  // namespace
}  // namespace olrank
