#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/ops/gradient_products.h"
#include "core/ops/optimizer_step.h"
#include "core/ops/pair_training.h"
#include "core/ops/precise_scores.h"
#include "core/ops/relu_network.h"
#include "core/random/rng_stream.h"
#include "tests/core/ops/network_fixture.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

TEST(ReluNetworkTest, LaysParametersOutLayerByLayer) {
  EXPECT_EQ(ntk_shape(136, 100, 3).output_scale, 10.0);
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
  Scratch scratch;
  std::vector<NetworkShape> shapes = test_shapes();
  shapes.push_back(linear_shape(19));
  shapes.push_back(ntk_shape(136, 100, 2));
  for (const NetworkShape& shape : shapes) {
    const std::vector<float> theta = random_theta(shape, 3);
    const std::vector<double> wide(theta.begin(), theta.end());
    for (const std::int64_t docs : {0, 1, 31, 128, 255, 256, 257, 600}) {
      const std::vector<float> features = random_numbers(docs * shape.inputs, 4);
      const FeatureMatrix matrix = matrix_of(features, shape.inputs);
      std::vector<float> scores(docs);
      std::vector<float> magnitudes(scores.size());
      score_docs(context, shape, theta, matrix, scores, magnitudes);
      std::vector<double> precise(docs);
      precise_scores(scratch, shape, wide, matrix, precise);
      for (std::int64_t doc = 0; doc < docs; ++doc) {
        const SlowScore slow = slow_score(shape, theta, features.data() + doc * shape.inputs);
        // A float32 unit of 34 terms is off by at most 34 · 6e-8 of its absolute terms, in up to 4 layers;
        // one of 136 terms by four times that, in 2.
        const double tolerance = (shape.inputs < 100 ? 1e-5 : 2e-5) * (1.0 + slow.magnitude);
        EXPECT_TRUE(std::abs(double{scores[doc]} - slow.score) <= tolerance);
        EXPECT_TRUE(std::abs(double{magnitudes[doc]} - slow.magnitude) <= tolerance);
        // A few hundred additions of double terms that cancel to no less than 10⁻³ of their size.
        EXPECT_NEAR(precise[doc], slow.score, 1e-12 * std::max(1.0, slow.magnitude));
      }
    }
  }
}

// To the bit, so that round 1 of a trial does not depend on rounding.
TEST(ReluNetworkTest, SymmetricNetworksScoreZeroInitially) {
  ExecutionContext context;
  Scratch scratch;
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
          std::vector<double> precise(docs, 1.0);
          precise_scores(scratch, shape, std::vector<double>(theta.begin(), theta.end()),
                         matrix_of(features, 46), precise);
          EXPECT_EQ(precise, std::vector<double>(docs, 0.0));
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

// W_1 = (W; W), hidden layers block diagonal with equal blocks, W_L = (w, −w): normal numbers of the
// variances 4/m, 2/m, or with biases uniform ones within 1/√(inputs that the unit has).
TEST(ReluNetworkTest, SymmetricInitialisationHasTheStatedBlocksAndVariances) {
  for (const NetworkShape& shape : {ntk_shape(60, 200, 3), standard_shape(60, 200, 3)}) {
    const bool uniform = shape.biases;
    std::vector<float> theta(shape.parameters());
    initialise(shape, Initialisation::kSymmetric, test_key(7), theta);
    const auto weight = [&](std::int64_t l, std::int64_t r, std::int64_t c) {
      return theta[shape.layer(l).weight + r * shape.layer(l).columns + c];
    };
    const auto bias = [&](std::int64_t l, std::int64_t r) { return theta[shape.layer(l).bias + r]; };
    const double bounds[] = {1.0 / std::sqrt(60.0), 1.0 / std::sqrt(100.0), 1.0 / std::sqrt(200.0)};
    double squares[] = {0.0, 0.0, 0.0};
    double counts[] = {0.0, 0.0, 0.0};
    const auto add = [&](std::int64_t l, float value) {
      if (uniform) {
        EXPECT_LE(std::abs(double{value}), bounds[l] * (1.0 + 1e-7));
      }
      squares[l] += double{value} * double{value};
      counts[l] += 1.0;
    };
    for (std::int64_t r = 0; r < 100; ++r) {
      for (std::int64_t l = 0; l < 2 && uniform; ++l) {
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
    for (std::int64_t l = 0; l < 3; ++l) {
      // Five deviations are missed once in 2 million: a mean of n squares of normals has the relative
      // deviation √(2/n), one of uniform numbers, which is a third of the bound's square, 0.9/√n.
      const double variance = uniform ? bounds[l] * bounds[l] / 3.0 : (l < 2 ? 4.0 : 2.0) / 200.0;
      EXPECT_NEAR(squares[l] / counts[l] / variance, 1.0,
                  5.0 * std::sqrt((uniform ? 0.81 : 2.0) / counts[l]));
    }
    if (uniform) {
      EXPECT_EQ(bias(2, 0), 0.0F);
      continue;
    }
    // The first number of layer 1's row 2 is the first draw at its place.
    RngStream draws(test_key(7), 0, 1, 2);
    EXPECT_EQ(weight(0, 2, 0), static_cast<float>(std::sqrt(4.0 / 200.0) * draws.normal()));
  }
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

/// Slopes that depend on the score and the document.
constexpr auto slopes_of = [](std::span<const float> scores, std::span<double> slopes) {
  for (std::size_t doc = 0; doc < scores.size(); ++doc)
    slopes[doc] = std::tanh(double{scores[doc]}) + 0.1 * static_cast<double>(doc % 7);
};

TEST(ScoreGradientTest, IsTheSumOfWeightedGradientsOfTheScores) {
  for (const std::int64_t docs : {0, 1, 255, 256, 257, 513, 1300}) {
    for (const NetworkShape& shape : {ntk_shape(9, 8, 2), standard_shape(9, 6, 3)}) {
      const std::vector<float> theta = random_numbers(shape.parameters(), 1, 0.3);
      const std::vector<float> values = random_numbers(docs * 9, 2, 0.3);
      const FeatureMatrix matrix = matrix_of(values, 9);
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

struct Problem {
  NetworkShape shape;
  std::vector<float> theta;
  std::vector<float> centre;
  std::vector<float> features;
  std::vector<PairTerm> terms;

  FeatureMatrix docs() const { return matrix_of(features, shape.inputs); }
  PairObjective objective() const { return {0.5, 0.3, centre}; }
};

Problem problem_of(const NetworkShape& shape, std::int64_t docs, std::int64_t terms) {
  return {shape, random_theta(shape, 61), random_theta(shape, 62), random_numbers(docs * shape.inputs, 63),
          random_terms(docs, terms)};
}

double slow_loss(const Problem& problem, const std::vector<double>& theta) {
  std::vector<double> scores;
  for (std::int64_t doc = 0; doc < problem.docs().docs; ++doc) {
    scores.push_back(slow_score(problem.shape, theta, problem.docs().doc(doc).data()).score);
  }
  double sum = 0.0;
  for (const PairTerm& term : problem.terms) {
    const double z = scores[term.first] - scores[term.second];
    // −log σ(z) = log(1 + e^{−z}), which keeps its digits where σ is next to 1.
    sum += term.labels * std::log1p(std::exp(-z)) + (term.weight - term.labels) * std::log1p(std::exp(z));
  }
  double distance = 0.0;
  for (std::size_t k = 0; k < theta.size(); ++k) {
    distance += (theta[k] - double{problem.centre[k]}) * (theta[k] - double{problem.centre[k]});
  }
  return 0.5 * sum + 0.3 * distance;
}

// Central differences of the obvious loss in double. Kinks lie within a step of 1e-6 with probability of
// about 1e-5 a unit and document; the fixed seeds are free of them.
TEST(PairTrainingTest, GradientsMatchFiniteDifferences) {
  for (const NetworkShape& shape : test_shapes()) {
    const Problem problem = problem_of(shape, 23, 60);
    ExecutionContext context;
    std::vector<double> gradient(problem.theta.size());
    const double loss = pair_loss_gradient(context, shape, problem.theta, problem.docs(), problem.terms,
                                           problem.objective(), gradient);
    const std::vector<double> centre(problem.theta.begin(), problem.theta.end());
    const double expected = slow_loss(problem, centre);
    // Scores in float32 are off by some 1e-6 of their terms, and 60 terms of weight up to 5 sum that up.
    EXPECT_NEAR(loss, expected, 1e-5 * (1.0 + std::abs(expected)));
    EXPECT_EQ(pair_loss(context, shape, problem.theta, problem.docs(), problem.terms, problem.objective()),
              loss);
    std::vector<double> alone(gradient.size());
    pair_gradient(context, shape, problem.theta, problem.docs(), problem.terms, problem.objective(), alone);
    EXPECT_EQ(alone, gradient);
    double largest = 0.0;
    for (const double value : gradient) largest = std::max(largest, std::abs(value));
    for (std::size_t k = 0; k < gradient.size(); ++k) {
      constexpr double kStep = 1e-6;
      std::vector<double> moved = centre;
      moved[k] += kStep;
      const double up = slow_loss(problem, moved);
      moved[k] = centre[k] - kStep;
      const double down = slow_loss(problem, moved);
      EXPECT_TRUE(std::abs(gradient[k] - (up - down) / (2.0 * kStep)) <= 2e-5 * (1.0 + largest))
          << k << " of " << gradient.size() << ": " << gradient[k] << " for "
          << (up - down) / (2.0 * kStep);
    }
  }
}

TEST(PairTrainingTest, OnlyThePriorContributesWithoutTerms) {
  const Problem problem = problem_of(ntk_shape(5, 6, 2), 2, 0);
  ExecutionContext context;
  std::vector<double> gradient(problem.theta.size(), 7.0);
  pair_loss_gradient(context, problem.shape, problem.theta, {nullptr, 0, 5}, {}, problem.objective(),
                     gradient);
  for (std::size_t k = 0; k < gradient.size(); ++k) {
    EXPECT_NEAR(gradient[k], 0.6 * (double{problem.theta[k]} - double{problem.centre[k]}), 1e-12);
  }
}

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

constexpr std::size_t kSize = 133;  // no multiple of a vector register

std::vector<double> gradient_number(std::uint32_t number) {
  std::vector<double> gradient;
  RngStream draws(test_key(80), number);
  for (std::size_t k = 0; k < kSize; ++k) gradient.push_back(draws.normal());
  return gradient;
}

std::vector<float> start() {
  return random_numbers(static_cast<std::int64_t>(kSize), 81);
}

TEST(OptimizerStepTest, GradientDescentRoundsOnce) {
  std::vector<float> theta = start();
  const std::vector<float> before = theta;
  const auto gradient = gradient_number(1);
  gradient_descent_step(0.125, gradient, theta);
  for (std::size_t k = 0; k < kSize; ++k) {
    EXPECT_EQ(theta[k], static_cast<float>(double{before[k]} - 0.125 * gradient[k]));
  }
}

TEST(OptimizerStepTest, DecayedStepsKeepThePositionInDouble) {
  std::vector<float> theta = start();
  std::vector<double> position(theta.begin(), theta.end());
  std::vector<double> expected = position;
  for (std::uint32_t number = 1; number <= 3; ++number) {
    const auto gradient = gradient_number(number);
    decayed_step(0.1, 0.3, gradient, position, theta);
    for (std::size_t k = 0; k < kSize; ++k) {
      expected[k] -= 0.1 * (gradient[k] + 0.3 * expected[k]);
      EXPECT_EQ(position[k], expected[k]);
      EXPECT_EQ(theta[k], static_cast<float>(expected[k]));
    }
  }
}

// Nesterov's method in its usual form: v' = 0.9 v − step g(x + 0.9 v), x' = x + v'.
TEST(OptimizerStepTest, NesterovMatchesTheUsualForm) {
  std::vector<float> theta = start();
  std::vector<double> x(theta.begin(), theta.end());
  std::vector<double> v(kSize);
  std::vector<double> velocity(kSize);
  std::vector<double> position = x;
  for (std::uint32_t number = 1; number <= 4; ++number) {
    const auto gradient = gradient_number(number);
    nesterov_step(0.05, gradient, velocity, position, theta);
    for (std::size_t k = 0; k < kSize; ++k) {
      v[k] = 0.9 * v[k] - 0.05 * gradient[k];
      x[k] += v[k];
      // θ is x + 0.9 v, rounded to float32 at every step.
      EXPECT_NEAR(theta[k], x[k] + 0.9 * v[k], 2e-6 * (1.0 + std::abs(x[k])));
    }
  }
}

TEST(OptimizerStepTest, AdamMatchesItsFormula) {
  std::vector<float> theta = start();
  std::vector<double> position(theta.begin(), theta.end());
  std::vector<double> expected = position;
  std::vector<double> first(kSize);
  std::vector<double> second(kSize);
  std::vector<double> mean(kSize);
  std::vector<double> square(kSize);
  constexpr double kDecay = 0.3;
  for (int number = 1; number <= 5; ++number) {
    const auto gradient = gradient_number(static_cast<std::uint32_t>(number));
    adam_step(number, 0.1, kDecay, gradient, {first, second}, position, theta);
    for (std::size_t k = 0; k < kSize; ++k) {
      const double g = gradient[k] + kDecay * expected[k];
      mean[k] += 0.1 * (g - mean[k]);
      square[k] += 0.001 * (g * g - square[k]);
      const double unbiased_mean = mean[k] / (1.0 - std::pow(0.9, number));
      const double unbiased_square = square[k] / (1.0 - std::pow(0.999, number));
      expected[k] -= 0.1 * unbiased_mean / (std::sqrt(unbiased_square) + 1e-8);
      EXPECT_NEAR(position[k], expected[k], 1e-11);
      EXPECT_EQ(theta[k], static_cast<float>(position[k]));
    }
  }
}

}  // namespace
}  // namespace olrank
