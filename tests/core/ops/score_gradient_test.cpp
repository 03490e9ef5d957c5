#include "core/ops/score_gradient.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/ops/gradient_products.h"
#include "core/ops/relu_network.h"
#include "core/random/rng_stream.h"

namespace olrank {
namespace {

std::vector<float> drawn_numbers(std::int64_t count, std::uint32_t number) {
  std::vector<float> values(count);
  RngStream draws(make_key({.purpose = Purpose::kSynthetic}), number);
  for (float& value : values) value = static_cast<float>(draws.uniform() - 0.5);
  return values;
}

/// Slopes that depend on the score and the document.
constexpr auto slopes_of = [](std::span<const float> scores, std::span<double> slopes) {
  for (std::size_t doc = 0; doc < scores.size(); ++doc)
    slopes[doc] = std::tanh(double{scores[doc]}) + 0.1 * static_cast<double>(doc % 7);
};

TEST(ScoreGradientTest, IsTheSumOfWeightedGradientsOfTheScores) {
  for (const std::int64_t docs : {1, 255, 256, 257, 513, 1300}) {
    for (const NetworkShape& shape : {ntk_shape(9, 8, 2), standard_shape(9, 6, 3)}) {
      const std::vector<float> theta = drawn_numbers(shape.parameters(), 1);
      const std::vector<float> values = drawn_numbers(docs * 9, 2);
      const FeatureMatrix matrix{values.data(), docs, 9};
      ExecutionContext one(1);
      std::vector<float> factors(docs * shape.factors());
      std::vector<float> scores(docs);
      tangent_factors(one, shape, theta, matrix, factors, scores);
      std::vector<double> slopes(docs);
      slopes_of(scores, slopes);
      std::vector<double> expected(theta.size());
      gradient_sum(one, shape, {factors.data(), docs}, slopes, expected);
      std::vector<double> found(theta.size(), 99.0);
      score_gradient(one, shape, theta, matrix, slopes_of, 2.0, found);
      // Sums of up to 512 documents in float32.
      for (std::size_t k = 0; k < theta.size(); ++k)
        EXPECT_NEAR(found[k], 2.0 * expected[k], 1e-5 * static_cast<double>(docs)) << k;
      ExecutionContext three(3);
      std::vector<double> again(theta.size());
      score_gradient(three, shape, theta, matrix, slopes_of, 2.0, again);
      EXPECT_EQ(again, found);
    }
  }
}

TEST(ScoreGradientTest, OfNoDocumentsIsZero) {
  const NetworkShape shape = ntk_shape(3, 4, 2);
  const std::vector<float> theta = drawn_numbers(shape.parameters(), 1);
  std::vector<double> gradient(theta.size(), 5.0);
  ExecutionContext context(1);
  score_gradient(context, shape, theta, {nullptr, 0, 3}, slopes_of, 1.0, gradient);
  EXPECT_EQ(gradient, std::vector<double>(theta.size(), 0.0));
}

}  // namespace
}  // namespace olrank
