#include "core/ops/pair_training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/core/ops/network_fixture.h"

namespace olrank {
namespace {

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

TEST(PairTrainingTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Problem problem = problem_of(standard_shape(20, 70, 3), 1700, 3000);
  std::vector<std::vector<double>> results;
  for (const int threads : {1, 2, 4}) {
    ExecutionContext context(threads);
    std::vector<double> gradient(problem.theta.size());
    gradient.push_back(pair_loss_gradient(context, problem.shape, problem.theta, problem.docs(),
                                          problem.terms, problem.objective(),
                                          std::span(gradient).first(problem.theta.size())));
    results.push_back(gradient);
  }
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
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

}  // namespace
}  // namespace olrank
