#include "core/ops/gradient_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random/rng_stream.h"
#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

/// Pairs with their memory; `features` of each row are not zero, the rest is padding.
struct RandomPairs {
  std::int64_t stride;
  std::vector<double> rows;
  std::vector<double> wins;
  std::vector<double> count;
  std::vector<double> theta;

  RandomPairs(std::uint32_t number, std::int64_t pairs, std::int64_t features, double scale)
      : stride((features + 7) / 8 * 8), theta(static_cast<std::size_t>(stride), 0.0) {
    RngStream coins(make_key({.seed = 36, .purpose = Purpose::kProbe}), number);
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      for (std::int64_t k = 0; k < stride; ++k) rows.push_back(k < features ? coins.normal() : 0.0);
      count.push_back(1.0 + coins.index(5));
      // As perturbed labels make them: any number, not only whole ones within [0, count].
      wins.push_back(pair % 3 == 0 ? count.back() * coins.normal()
                                   : coins.index(static_cast<std::uint32_t>(count.back()) + 1));
    }
    for (std::int64_t k = 0; k < features; ++k) theta[k] = scale * coins.normal();
  }
  FoldedPairs pairs() const { return {rows.data(), std::ssize(count), stride, wins.data(), count.data()}; }
};

struct Slow {
  double loss = 0.0;
  double loss_size = 0.0;  // sum of absolute terms
  std::vector<double> gradient;
  std::vector<double> gradient_size;
  std::vector<double> curvature;
};

Slow slow(const RandomPairs& data, const std::vector<double>& theta) {
  Slow result;
  const auto stride = static_cast<std::size_t>(data.stride);
  result.gradient.assign(stride, 0.0);
  result.gradient_size.assign(stride, 0.0);
  for (std::size_t s = 0; s < data.count.size(); ++s) {
    double z = 0.0;
    for (std::size_t k = 0; k < stride; ++k) z += data.rows[s * stride + k] * theta[k];
    const double p = 1.0 / (1.0 + std::exp(-z));
    const double won = data.wins[s] * std::log1p(std::exp(-z));
    const double lost = (data.count[s] - data.wins[s]) * std::log1p(std::exp(z));
    result.loss += won + lost;
    result.loss_size += std::fabs(won) + std::fabs(lost);
    for (std::size_t k = 0; k < stride; ++k) {
      const double x = data.rows[s * stride + k];
      result.gradient[k] += (data.count[s] * p - data.wins[s]) * x;
      result.gradient_size[k] += (data.count[s] * p + std::fabs(data.wins[s])) * std::fabs(x);
    }
    result.curvature.push_back(data.count[s] * p * (1.0 - p));
  }
  return result;
}

/// n terms of size T sum to within n·2⁻⁵³·T of the truth; z, of |z| ≤ 30 from 100 products, is off by less
/// than 10⁻¹³ and passes at most that share on to each term. Together below 3·10⁻¹³ of the absolute sum for
/// the sizes below.
constexpr double kShare = 3e-13;

TEST(FoldedPairGradientTest, MatchesLongDoubleFormula) {
  ExecutionContext context;
  std::uint32_t number = 0;
  for (const std::int64_t pairs : {0, 1, 31, 32, 33, 2047, 2048, 2049, 5000}) {
    for (const std::int64_t features : {1, 7, 8, 9, 16, 17, 46}) {
      const RandomPairs data(++number, pairs, features, 0.7);
      const Slow expected = slow(data, data.theta);
      const auto stride = static_cast<std::size_t>(data.stride);
      std::vector<double> gradient(stride, kNan);
      std::vector<double> curvature(pairs, kNan);
      folded_pair_gradient(context, data.pairs(), data.theta, gradient, curvature);
      for (std::size_t k = 0; k < stride; ++k) {
        ASSERT_TRUE(std::fabs(gradient[k] - expected.gradient[k]) <= kShare * expected.gradient_size[k])
            << pairs << " pairs, feature " << k << " of " << features;
      }
      for (std::size_t s = 0; s < curvature.size(); ++s) {
        // 1 − p cancels where p is near 1: absolute, of the count.
        ASSERT_TRUE(std::fabs(curvature[s] - expected.curvature[s]) <= kShare * data.count[s]) << s;
      }
      std::vector<double> without(stride, kNan);
      folded_pair_gradient(context, data.pairs(), data.theta, without, {});
      ASSERT_EQ(without, gradient);
      ASSERT_TRUE(std::fabs(folded_pair_loss(data.pairs(), data.theta) - expected.loss) <=
                  kShare * expected.loss_size)
          << pairs << " pairs, " << features << " features";
    }
  }
}

TEST(FoldedPairGradientTest, StaysFiniteForLargeScores) {
  // z of ±800 and beyond: σ is 0 or 1, the loss |z| or 0.
  ExecutionContext context;
  std::vector<double> rows(3 * 8, 0.0);
  rows[0] = 800.0;
  rows[8] = -800.0;
  rows[16] = -1e6;
  const std::vector<double> wins = {1.0, 1.0, 2.0};
  const std::vector<double> count = {1.0, 1.0, 3.0};
  const FoldedPairs pairs{rows.data(), 3, 8, wins.data(), count.data()};
  std::vector<double> theta(8, 0.0);
  theta[0] = 1.0;
  std::vector<double> gradient(8);
  std::vector<double> curvature(3);
  folded_pair_gradient(context, pairs, theta, gradient, curvature);
  EXPECT_EQ(gradient[0], 0.0 * 800.0 + -1.0 * -800.0 + -2.0 * -1e6);
  EXPECT_EQ(curvature, (std::vector<double>{0.0, 0.0, 0.0}));
  EXPECT_EQ(folded_pair_loss(pairs, theta), 0.0 + 800.0 + 2e6);
}

TEST(FoldedPairGradientTest, PropagatesNan) {
  ExecutionContext context;
  RandomPairs data(3000, 40, 8, 0.5);
  data.theta[3] = kNan;
  std::vector<double> gradient(8);
  folded_pair_gradient(context, data.pairs(), data.theta, gradient, {});
  EXPECT_TRUE(std::isnan(gradient[0]));
  EXPECT_TRUE(std::isnan(folded_pair_loss(data.pairs(), data.theta)));
}

}  // namespace
}  // namespace olrank
