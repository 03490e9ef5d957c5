#include "core/ops/relu_network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.h"
#include "tests/core/ops/network_fixture.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

TEST(ReluNetworkTest, LaysParametersOutLayerByLayer) {
  const NetworkShape plain = ntk_shape(136, 100, 3);
  EXPECT_EQ(plain.parameters(), 100 * 136 + 100 * 100 + 100);
  EXPECT_EQ(plain.factors(), (136 + 100) + (100 + 100) + (100 + 1));
  EXPECT_EQ(plain.layer(1).weight, 13600);
  EXPECT_FALSE(plain.layer(1).has_bias());
  EXPECT_EQ(plain.output_scale, 10.0);
  const NetworkShape biased = standard_shape(3, 4, 2);
  EXPECT_EQ(biased.parameters(), 12 + 4 + 4 + 1);
  EXPECT_EQ(biased.layer(0).bias, 12);
  EXPECT_EQ(biased.layer(1).weight, 16);
  EXPECT_EQ(biased.layer(1).bias, 20);
  // Every parameter and every factor belongs to exactly one place.
  for (const NetworkShape& shape : test_shapes()) {
    std::int64_t parameter = 0;
    std::int64_t factor = 0;
    for (std::int64_t l = 0; l < shape.depth; ++l) {
      const NetworkLayer layer = shape.layer(l);
      EXPECT_EQ(layer.weight, parameter);
      parameter += layer.rows * layer.columns;
      if (shape.biases) {
        EXPECT_EQ(layer.bias, parameter);
        parameter += layer.rows;
      }
      EXPECT_EQ(layer.input, factor);
      EXPECT_EQ(layer.delta, factor + layer.columns);
      factor += layer.columns + layer.rows;
    }
    EXPECT_EQ(shape.parameters(), parameter);
    EXPECT_EQ(shape.factors(), factor);
  }
}

TEST(ReluNetworkTest, RefusesInvalidSizes) {
  EXPECT_THROW(ntk_shape(0, 4, 2), InvalidArgument);
  EXPECT_THROW(ntk_shape(4, 0, 2), InvalidArgument);
  EXPECT_THROW(standard_shape(4, 4, 1), InvalidArgument);
  EXPECT_EQ(message_of<InvalidArgument>([&] { ntk_shape(4, 7, 2); }),
            "The ntk parameterisation starts with two equal halves, so its width must be even, not 7: "
            "choose 6 or 8, or a standard network of the usual initialisation.");
  std::vector<float> theta(standard_shape(4, 7, 2).parameters());
  EXPECT_THROW(initialise(standard_shape(4, 7, 2), Initialisation::kSymmetric, test_key(1), theta),
               InvalidArgument);
}

TEST(ReluNetworkTest, ScoresMatchSlowLoops) {
  ExecutionContext context;
  for (const NetworkShape& shape : test_shapes()) {
    const std::vector<float> theta = random_theta(shape, 3);
    for (const std::int64_t docs : {0, 1, 31, 128, 300}) {
      const std::vector<float> features = random_numbers(docs * shape.inputs, 4);
      std::vector<float> scores(docs);
      std::vector<float> magnitudes(scores.size());
      score_docs(context, shape, theta, matrix_of(features, shape.inputs), scores, magnitudes);
      for (std::int64_t doc = 0; doc < docs; ++doc) {
        const SlowScore slow = slow_score(shape, theta, features.data() + doc * shape.inputs);
        // A float32 unit of 34 terms is off by at most 34 · 6e-8 of its absolute terms, in up to 4 layers.
        const double tolerance = 1e-5 * (1.0 + slow.magnitude);
        EXPECT_TRUE(std::abs(double{scores[doc]} - slow.score) <= tolerance);
        EXPECT_TRUE(std::abs(double{magnitudes[doc]} - slow.magnitude) <= tolerance);
      }
    }
  }
}

// To the bit, so that round 1 of a trial does not depend on rounding.
TEST(ReluNetworkTest, SymmetricNetworksScoreZeroInitially) {
  ExecutionContext context;
  for (const std::int64_t depth : {2, 3, 4}) {
    for (const std::int64_t width : {2, 6, 16, 34, 66, 100, 250}) {
      for (const NetworkShape& shape : {ntk_shape(46, width, depth), standard_shape(46, width, depth)}) {
        std::vector<float> theta(shape.parameters());
        initialise(shape, Initialisation::kSymmetric, test_key(5), theta);
        for (const std::int64_t docs : {1, 2, 7, 200, 300}) {
          const std::vector<float> features = random_numbers(docs * 46, 6, 3.0);
          std::vector<float> scores(docs, 1.0F);
          std::vector<float> magnitudes(scores.size());
          score_docs(context, shape, theta, matrix_of(features, 46), scores, magnitudes);
          for (std::size_t doc = 0; doc < scores.size(); ++doc) {
            EXPECT_EQ(scores[doc], 0.0F) << depth << " " << width << " " << docs << " " << shape.biases;
            if (width == 100) {
              EXPECT_GT(magnitudes[doc], shape.biases ? 0.1F : 1.0F);
            }
          }
        }
      }
    }
  }
}

// W_1 = (W; W), hidden layers block diagonal with equal blocks, W_L = (w, −w), and the variances 4/m, 2/m.
TEST(ReluNetworkTest, SymmetricInitialisationHasTheStatedBlocksAndVariances) {
  const NetworkShape shape = ntk_shape(60, 200, 3);
  std::vector<float> theta(shape.parameters());
  initialise(shape, Initialisation::kSymmetric, test_key(7), theta);
  const auto weight = [&](std::int64_t l, std::int64_t r, std::int64_t c) {
    return theta[shape.layer(l).weight + r * shape.layer(l).columns + c];
  };
  double first = 0.0;
  double hidden = 0.0;
  double output = 0.0;
  for (std::int64_t r = 0; r < 100; ++r) {
    for (std::int64_t c = 0; c < 60; ++c) {
      EXPECT_EQ(weight(0, r, c), weight(0, r + 100, c));
      first += weight(0, r, c) * weight(0, r, c);
    }
    for (std::int64_t c = 0; c < 100; ++c) {
      EXPECT_EQ(weight(1, r, c), weight(1, r + 100, c + 100));
      EXPECT_EQ(weight(1, r + 100, c), 0.0F);
      EXPECT_EQ(weight(1, r, c + 100), 0.0F);
      hidden += weight(1, r, c) * weight(1, r, c);
    }
    EXPECT_EQ(weight(2, 0, r), -weight(2, 0, r + 100));
    output += weight(2, 0, r) * weight(2, 0, r);
  }
  // A mean of n squares of normals has relative deviation √(2/n); five of them are missed once in 2
  // million.
  EXPECT_NEAR(first / 6000.0 / (4.0 / 200.0), 1.0, 5.0 * std::sqrt(2.0 / 6000.0));
  EXPECT_NEAR(hidden / 10000.0 / (4.0 / 200.0), 1.0, 5.0 * std::sqrt(2.0 / 10000.0));
  EXPECT_NEAR(output / 100.0 / (2.0 / 200.0), 1.0, 5.0 * std::sqrt(2.0 / 100.0));
  // The first number of layer 1's row 2 is the first draw at its place.
  RngStream draws(test_key(7), 0, 1, 2);
  EXPECT_EQ(weight(0, 2, 0), static_cast<float>(std::sqrt(4.0 / 200.0) * draws.normal()));
}

// The same blocks with biases, each number uniform within 1/√(inputs that its unit has).
TEST(ReluNetworkTest, SymmetricInitialisationOfAStandardNetworkIsUniform) {
  const NetworkShape shape = standard_shape(60, 200, 3);
  std::vector<float> theta(shape.parameters());
  initialise(shape, Initialisation::kSymmetric, test_key(7), theta);
  const auto weight = [&](std::int64_t l, std::int64_t r, std::int64_t c) {
    return theta[shape.layer(l).weight + r * shape.layer(l).columns + c];
  };
  const auto bias = [&](std::int64_t l, std::int64_t r) { return theta[shape.layer(l).bias + r]; };
  const double bounds[] = {1.0 / std::sqrt(60.0), 1.0 / std::sqrt(100.0), 1.0 / std::sqrt(200.0)};
  double squares[] = {0.0, 0.0, 0.0};
  const auto add = [&](std::int64_t l, float value) {
    EXPECT_LE(std::abs(double{value}), bounds[l] * (1.0 + 1e-7));
    squares[l] += double{value} * double{value};
  };
  for (std::int64_t r = 0; r < 100; ++r) {
    for (std::int64_t l = 0; l < 2; ++l) {
      EXPECT_EQ(bias(l, r), bias(l, r + 100));
      add(l, bias(l, r));
    }
    for (std::int64_t c = 0; c < 60; ++c) {
      EXPECT_EQ(weight(0, r, c), weight(0, r + 100, c));
      add(0, weight(0, r, c));
    }
    for (std::int64_t c = 0; c < 100; ++c) {
      EXPECT_EQ(weight(1, r, c), weight(1, r + 100, c + 100));
      EXPECT_EQ(weight(1, r + 100, c), 0.0F);
      EXPECT_EQ(weight(1, r, c + 100), 0.0F);
      add(1, weight(1, r, c));
    }
    EXPECT_EQ(weight(2, 0, r), -weight(2, 0, r + 100));
    add(2, weight(2, 0, r));
  }
  EXPECT_EQ(bias(2, 0), 0.0F);
  // Uniform squares have mean 1/3 and deviation 0.3, in units of the bound's square: five deviations.
  const double counts[] = {6100.0, 10100.0, 100.0};
  for (std::int64_t l = 0; l < 3; ++l)
    EXPECT_NEAR(squares[l] / counts[l] / (bounds[l] * bounds[l]), 1.0 / 3.0, 1.5 / std::sqrt(counts[l]));
}

TEST(ReluNetworkTest, UniformInitialisationIsUniform) {
  const NetworkShape shape = standard_shape(25, 64, 3);
  std::vector<float> theta(shape.parameters());
  initialise(shape, Initialisation::kUniform, test_key(8), theta);
  for (std::int64_t l = 0; l < 3; ++l) {
    const NetworkLayer layer = shape.layer(l);
    const double bound = 1.0 / std::sqrt(static_cast<double>(layer.columns));
    const std::int64_t count = layer.rows * layer.columns + layer.rows;
    double sum_sq = 0.0;
    for (std::int64_t k = 0; k < count; ++k) {
      const double value{theta[layer.weight + k]};
      EXPECT_LE(std::abs(value), bound * (1.0 + 1e-7));
      sum_sq += value * value;
    }
    // Uniform squares have mean 1/3 and deviation 0.3, in units of the bound's square: five deviations.
    EXPECT_NEAR(sum_sq / static_cast<double>(count) / (bound * bound), 1.0 / 3.0,
                5.0 * 0.3 / std::sqrt(static_cast<double>(count)));
  }
}

TEST(ReluNetworkTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  const NetworkShape shape = standard_shape(46, 100, 3);
  const std::vector<float> theta = random_theta(shape, 9);
  const std::vector<float> features = random_numbers(1000 * 46, 10);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 4}) {
    ExecutionContext context(threads);
    results.emplace_back(1000);
    score_docs(context, shape, theta, matrix_of(features, 46), results.back());
  }
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
}

}  // namespace
}  // namespace olrank
