#include "models/linear/linear_belief.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/feedback/preference_pairs.h"
#include "core/random/rng_stream.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::int64_t kFeatures = 13;
constexpr std::int64_t kStride = 16;

/// A history that grows: pairs of random differences, won as a hidden direction and noise say, or always
/// as the direction says.
struct World {
  RngStream coins;
  bool separable;
  std::vector<double> hidden = std::vector<double>(kFeatures);
  std::vector<double> rows;
  std::vector<double> wins;
  std::vector<double> count;
  std::int64_t observed = 0;

  World(std::uint32_t number, bool is_separable, int pairs = 0)
      : coins(make_key({.seed = 38, .purpose = Purpose::kProbe}), number), separable(is_separable) {
    coins.unit_vector(hidden);
    grow(pairs);
  }
  void grow(int pairs) {
    for (int pair = 0; pair < pairs; ++pair) {
      double z = 0.0;
      for (std::int64_t k = 0; k < kStride; ++k) {
        rows.push_back(k < kFeatures ? coins.uniform() - coins.uniform() : 0.0);
        if (k < kFeatures) z += hidden[k] * rows.back();
      }
      const double times = 1.0 + coins.index(3);
      double won = 0.0;
      for (double time = 0; time < times; time += 1.0) {
        won += separable ? (z > 0.0 ? 1.0 : 0.0)
                         : (coins.uniform() < 1.0 / (1.0 + std::exp(-4.0 * z)) ? 1.0 : 0.0);
      }
      wins.push_back(won);
      count.push_back(times);
      observed += static_cast<std::int64_t>(times);
    }
  }
  FoldedPairs pairs() const { return {rows.data(), std::ssize(count), kStride, wins.data(), count.data()}; }
};

/// F(θ) = Σ cross-entropy + c/2 ‖θ‖², its gradient and its Hessian, term by term.
struct Objective {
  double value = 0.0;
  Eigen::VectorXd gradient = Eigen::VectorXd::Zero(kStride);
  Matrix hessian = Matrix::Zero(kStride, kStride);
};

Objective objective(const World& world, double ridge, const Eigen::VectorXd& theta) {
  Objective at;
  for (std::size_t s = 0; s < world.count.size(); ++s) {
    const Eigen::Map<const Eigen::VectorXd> x(world.rows.data() + s * kStride, kStride);
    const double z = x.dot(theta);
    const double p = 1.0 / (1.0 + std::exp(-z));
    at.value += world.wins[s] * std::log1p(std::exp(-z)) +
                (world.count[s] - world.wins[s]) * std::log1p(std::exp(z));
    at.gradient += (world.count[s] * p - world.wins[s]) * x;
    at.hessian += world.count[s] * p * (1.0 - p) * x * x.transpose();
  }
  at.value += 0.5 * ridge * theta.squaredNorm();
  at.gradient += ridge * theta;
  at.hessian += ridge * Matrix::Identity(kStride, kStride);
  return at;
}

/// The optimum by plain Newton steps from zero with step halving on the value, until nothing falls.
Eigen::VectorXd slow_optimum(const World& world, double ridge) {
  Eigen::VectorXd theta = Eigen::VectorXd::Zero(kStride);
  for (int step = 0; step < 200; ++step) {
    const Objective at = objective(world, ridge, theta);
    const Eigen::VectorXd direction = at.hessian.ldlt().solve(at.gradient);
    double scale = 1.0;
    while (scale > 1e-12 && !(objective(world, ridge, theta - scale * direction).value <
                              at.value - 1e-4 * scale * direction.dot(at.gradient))) {
      scale *= 0.5;
    }
    if (scale <= 1e-12) {
      // The value is no longer conclusive; a last full step if the gradient is.
      const Eigen::VectorXd next = theta - direction;
      return objective(world, ridge, next).gradient.norm() < at.gradient.norm() ? next : theta;
    }
    theta -= scale * direction;
  }
  return theta;
}

Eigen::VectorXd vector_of(std::span<const double> theta) {
  return Eigen::Map<const Eigen::VectorXd>(theta.data(), static_cast<Eigen::Index>(theta.size()));
}

class NewtonTrainerTest : public testing::TestWithParam<LossForm> {};

TEST_P(NewtonTrainerTest, ReachesTheOptimumFromEveryWarmStart) {
  ExecutionContext context;
  std::uint32_t number = 0;
  for (const bool separable : {false, true}) {
    for (const double lambda : {1e-4, 0.1, 10.0}) {
      World world(++number, separable);
      NewtonTrainer trainer(kStride, {.tolerance = 1e-6, .max_steps = 50});
      for (int round = 0; round < 25; ++round) {
        world.grow(round == 10 ? 400 : 6);
        const double ridge = ridge_weight(GetParam(), lambda, world.observed);
        // docs/MATH.md, "Linear rankers": λ/2 ‖θ‖² next to the sum, λ‖θ‖² next to the mean, which is n
        // times that next to the sum.
        ASSERT_EQ(ridge, GetParam() == LossForm::kSum ? lambda
                                                      : 2.0 * lambda * static_cast<double>(world.observed));
        const NewtonReport report = trainer.train(context, world.pairs(), world.observed, ridge);
        const Eigen::VectorXd theta = vector_of(trainer.theta());
        const Objective reached = objective(world, ridge, theta);
        const Objective best = objective(world, ridge, slow_optimum(world, ridge));
        const double target = 1e-6 * static_cast<double>(world.observed);
        ASSERT_LE(report.steps, 50);
        ASSERT_TRUE(report.gradient_norm <= target) << report.gradient_norm << " after " << world.observed;
        // Sums of some thousand terms below 2: rounding of 10⁻¹² at most.
        ASSERT_TRUE(std::fabs(report.gradient_norm - reached.gradient.norm()) <= 1e-11);
        const double rounding = 1e-13 * (1.0 + best.value);
        const double gap = reached.value - best.value;
        ASSERT_TRUE(gap >= -rounding) << "the slow optimum is none: " << gap;
        ASSERT_TRUE(gap <= report.optimality_gap + rounding) << gap << " above " << report.optimality_gap;
        ASSERT_TRUE(report.optimality_gap <= target * target / (2.0 * ridge) * (1.0 + 1e-12));
        for (std::int64_t k = kFeatures; k < kStride; ++k) ASSERT_EQ(trainer.theta()[k], 0.0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, NewtonTrainerTest, testing::Values(LossForm::kSum, LossForm::kMean),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(NewtonTrainerTest, ReportedGapBoundsTheTrueGap) {
  ExecutionContext context;
  World world(20, false, 300);
  const double ridge = 0.5;
  const double best = objective(world, ridge, slow_optimum(world, ridge)).value;
  double last = std::numeric_limits<double>::infinity();
  for (const std::int64_t steps : {0, 1, 2, 3}) {
    NewtonTrainer trainer(kStride, {.tolerance = 0.0, .max_steps = steps});
    const NewtonReport report = trainer.train(context, world.pairs(), world.observed, ridge);
    EXPECT_EQ(report.steps, steps);
    const double gap = objective(world, ridge, vector_of(trainer.theta())).value - best;
    EXPECT_TRUE(gap >= -1e-10 && gap <= report.optimality_gap + 1e-10) << steps << ": " << gap;
    EXPECT_LT(gap, last);
    last = gap;
    if (steps == 0) {
      EXPECT_GT(gap, 1.0);
    }
  }
}

TEST(NewtonTrainerTest, ToleranceZeroStopsAtRounding) {
  ExecutionContext context;
  World world(21, true, 500);
  NewtonTrainer trainer(kStride, {.tolerance = 0.0, .max_steps = 1000});
  const NewtonReport report = trainer.train(context, world.pairs(), world.observed, 0.01);
  EXPECT_LT(report.steps, 100);
  // A thousand terms below 3: their sum is rounded to a few units of 10⁻¹³.
  EXPECT_TRUE(report.gradient_norm <= 1e-10) << report.gradient_norm;
}

TEST(NewtonTrainerTest, OptimumIsZeroWithoutPairs) {
  ExecutionContext context;
  const World world(22, false);
  NewtonTrainer trainer(kStride, {});
  const NewtonReport report = trainer.train(context, world.pairs(), 0, 0.1);
  EXPECT_EQ(report.steps, 0);
  EXPECT_EQ(report.optimality_gap, 0.0);
  EXPECT_EQ(vector_of(trainer.theta()).norm(), 0.0);
}

TEST(NewtonTrainerTest, RefusesFeaturesThatOverflowAndKeepsParameters) {
  ExecutionContext context;
  World world(25, false, 20);
  NewtonTrainer trainer(kStride, {});
  trainer.train(context, world.pairs(), world.observed, 0.1);
  const std::vector<double> theta(trainer.theta().begin(), trainer.theta().end());
  World bad = world;
  bad.grow(3);
  for (std::size_t k = world.rows.size(); k < bad.rows.size(); ++k) bad.rows[k] *= 1e200;
  EXPECT_THROW(trainer.train(context, bad.pairs(), bad.observed, 0.1), NumericError);
  EXPECT_TRUE(std::equal(theta.begin(), theta.end(), trainer.theta().begin()));
  trainer.train(context, world.pairs(), world.observed, 0.1);
  for (std::size_t k = 0; k < theta.size(); ++k) EXPECT_NEAR(trainer.theta()[k], theta[k], 1e-4);
}

// A sample of all other pairs, each with its own weight, replaces the expansion by the loss itself.
TEST_P(NewtonTrainerTest, ReplayOfEveryPairReachesTheOptimum) {
  ExecutionContext context;
  World world(27, false, 60);
  NewtonTrainer trainer(kStride, {.tolerance = 1e-9, .max_steps = 50, .replays = true});
  trainer.train(context, world.pairs(), world.observed, ridge_weight(GetParam(), 0.1, world.observed));
  for (int round = 0; round < 30; ++round) {
    std::size_t known = world.count.size();
    world.grow(4);
    for (; known < world.count.size(); ++known)
      trainer.take_in(world.rows.data() + known * kStride, world.count[known], world.wins[known]);
    if (round % 3 == 2) {  // the oldest pair goes
      trainer.take_in(world.rows.data(), -world.count[0], -world.wins[0]);
      world.observed -= static_cast<std::int64_t>(world.count[0]);
      world.rows.erase(world.rows.begin(), world.rows.begin() + kStride);
      world.count.erase(world.count.begin());
      world.wins.erase(world.wins.begin());
    }
    const double ridge = ridge_weight(GetParam(), 0.1, world.observed);
    FoldedPairs sample = world.pairs();
    sample.first_wins = nullptr;
    const NewtonReport report = trainer.replay(context, sample, 50, world.observed, ridge);
    const Objective reached = objective(world, ridge, vector_of(trainer.theta()));
    ASSERT_TRUE(reached.gradient.norm() <= 1e-9 * static_cast<double>(world.observed) + 1e-11)
        << reached.gradient.norm() << " after " << report.steps << " steps in round " << round;
    ASSERT_TRUE(std::fabs(report.gradient_norm - reached.gradient.norm()) <= 1e-11);
    ASSERT_TRUE((vector_of(trainer.theta()) - slow_optimum(world, ridge)).norm() <= 1e-6);
  }
}

// Over all pairs that may be drawn next to the two own ones, the gradients average to that of F.
TEST(HistoryExpansionTest, GradientsOfDrawnPairsAverageToThatOfTheHistory) {
  ExecutionContext context;
  World world(28, false, 40);
  const double ridge = 0.3;
  const Eigen::VectorXd centre = slow_optimum(world, ridge);
  HistoryExpansion expansion(kStride);
  expansion.set(context, world.pairs(), {centre.data(), kStride});
  const std::int64_t earlier = std::ssize(world.count);
  const auto weight = static_cast<double>(world.observed);
  world.grow(2);
  for (std::int64_t at = earlier; at < earlier + 2; ++at)
    expansion.add(world.rows.data() + at * kStride, world.count[at], world.wins[at]);
  Eigen::VectorXd theta = centre;
  for (std::int64_t k = 0; k < kFeatures; ++k) theta[k] += world.coins.normal();
  const Eigen::VectorXd expected = objective(world, ridge, theta).gradient;
  Eigen::VectorXd mean = Eigen::VectorXd::Zero(kStride);
  double spread = 0.0;
  for (std::int64_t drawn = 0; drawn < earlier; ++drawn) {
    std::vector<double> rows(world.rows.begin() + earlier * kStride, world.rows.end());
    rows.insert(rows.end(), world.rows.begin() + drawn * kStride,
                world.rows.begin() + (drawn + 1) * kStride);
    const std::vector<double> weights{world.count[earlier], world.count[earlier + 1], weight};
    const Scratch::Frame frame(context.scratch());
    const SampledGradient gradient_at(context, expansion,
                                      {rows.data(), 3, kStride, nullptr, weights.data()}, ridge);
    Eigen::VectorXd gradient(kStride);
    gradient_at({theta.data(), kStride}, {gradient.data(), kStride});
    mean += gradient * world.count[drawn] / weight;
    spread = std::max(spread, (gradient - expected).norm());
  }
  // Some hundred terms below 10: rounding of 10⁻¹³ at most.
  EXPECT_TRUE((mean - expected).norm() <= 1e-11) << (mean - expected).norm();
  EXPECT_GT(spread, 0.1);
}

// Rounding makes the Hessian of the largest rows indefinite at a small ridge.
TEST(NewtonTrainerTest, SurvivesRowsOfAnyScale) {
  ExecutionContext context;
  for (const double scale : {1e4, 1e8, 1e12}) {
    SCOPED_TRACE(scale);
    World world(26, false, 40);
    NewtonTrainer trainer(kStride, {});
    trainer.train(context, world.pairs(), world.observed, 1e-3);
    const std::size_t known = world.rows.size();
    world.grow(2);
    for (std::size_t k = known; k < world.rows.size(); ++k) world.rows[k] *= scale;
    for (int round = 0; round < 3; ++round) trainer.train(context, world.pairs(), world.observed, 1e-3);
    for (const double value : trainer.theta()) EXPECT_LT(std::abs(value), 1e3);
  }
}

}  // namespace
}  // namespace olrank
