#include "core/ops/tangent_factors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/core/ops/network_fixture.h"

namespace olrank {
namespace {

// Central differences of the obvious double formula, at points where no unit changes side within a step.
TEST(TangentFactorsTest, MatchFiniteDifferences) {
  ExecutionContext context;
  for (const NetworkShape& shape : test_shapes()) {
    const std::vector<float> theta = random_theta(shape, 11);
    const std::vector<float> features = random_numbers(40 * shape.inputs, 12);
    std::vector<float> factors(40 * shape.factors());
    std::vector<float> scores(40);
    tangent_factors(context, shape, theta, matrix_of(features, shape.inputs), factors, scores);
    std::vector<float> expected_scores(40);
    score_docs(context, shape, theta, matrix_of(features, shape.inputs), expected_scores);
    EXPECT_EQ(scores, expected_scores);
    const std::vector<double> centre(theta.begin(), theta.end());
    constexpr double kStep = 1e-5;
    int compared = 0;
    for (std::int64_t doc = 0; doc < 40 && compared < 4; ++doc) {
      const float* x = features.data() + doc * shape.inputs;
      if (slow_score(shape, centre, x).nearest_kink < 100.0 * kStep) continue;
      ++compared;
      const std::vector<double> g = slow_gradient(shape, factors.data() + doc * shape.factors());
      double largest = 0.0;
      for (const double value : g) largest = std::max(largest, std::abs(value));
      for (std::size_t k = 0; k < g.size(); ++k) {
        std::vector<double> moved = centre;
        moved[k] += kStep;
        const double up = slow_score(shape, moved, x).score;
        moved[k] = centre[k] - kStep;
        const double down = slow_score(shape, moved, x).score;
        // f is linear in each single parameter while no unit changes side, so the difference is off by
        // rounding only (1e-16/step); the factors are float32, off by tens of 6e-8.
        EXPECT_TRUE(std::abs(g[k] - (up - down) / (2.0 * kStep)) <= 1e-5 * (1.0 + largest))
            << "parameter " << k << " of " << g.size();
      }
    }
    EXPECT_EQ(compared, 4);
  }
}

TEST(TangentFactorsTest, ExpandInTiles) {
  for (const NetworkShape& shape : test_shapes()) {
    const std::vector<float> factors = random_factors(shape, 6, 13);
    const TangentFactors docs = view_of(shape, factors);
    const std::int64_t p = shape.parameters();
    const Eigen::MatrixXd gradients = slow_gradients(shape, docs);
    const Eigen::MatrixXd differences = slow_pair_gradients(shape, docs);
    for (const std::int64_t tile : {std::int64_t{1}, std::int64_t{7}, p}) {
      for (std::int64_t begin = 0; begin < p; begin += tile) {
        const std::int64_t end = std::min(p, begin + tile);
        std::vector<double> rows(6 * (tile + 1), -1.0);
        expand_docs(shape, docs, 0.5, begin, end, rows.data(), tile + 1);
        std::vector<double> pairs(3 * (tile + 1), -1.0);
        expand_pairs(shape, docs, 0.5, begin, end, pairs.data(), tile + 1);
        for (std::int64_t k = begin; k < end; ++k) {
          // Halving is exact, products of float32 numbers too: not a bit differs.
          for (std::int64_t i = 0; i < 6; ++i) {
            EXPECT_EQ(rows[i * (tile + 1) + k - begin], 0.5 * gradients(i, k));
          }
          for (std::int64_t i = 0; i < 3; ++i) {
            EXPECT_EQ(pairs[i * (tile + 1) + k - begin], 0.5 * differences(i, k));
          }
        }
        for (std::int64_t i = 0; i < 6; ++i) {
          EXPECT_EQ(rows[i * (tile + 1) + tile], -1.0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace olrank
