#include "models/linear/linear_belief.h"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <memory>

#include "core/random/rng_stream.h"
#include "models/ranker_factory.h"
#include "tests/models/small_world.h"
#include "tests/support/chi_square.h"

namespace olrank {
namespace {

constexpr std::int64_t kValues = 9;
constexpr std::int64_t kWorldDocs = 400;
constexpr double kPrior = 0.5;

/// Documents with uniform features, and pairs of them whose winner a hidden direction and noise decide.
struct Preferences {
  RngStream coins;
  std::vector<float> values;
  Eigen::VectorXd hidden = Eigen::VectorXd::Zero(kValues);
  std::vector<Eigen::VectorXd> seen;  // x_winner − x_loser

  explicit Preferences(std::uint32_t number)
      : coins(make_key({.seed = 92, .purpose = Purpose::kProbe}), number) {
    coins.unit_vector({hidden.data(), kValues});
    for (std::int64_t at = 0; at < kWorldDocs * kValues; ++at)
      values.push_back(static_cast<float>(coins.uniform() - 0.5));
  }
  Eigen::VectorXd doc(std::int32_t number) const {
    return Eigen::Map<const Eigen::VectorXf>(values.data() + number * kValues, kValues).cast<double>();
  }
  std::vector<PreferencePair> next(int pairs) {
    std::vector<PreferencePair> made;
    for (int pair = 0; pair < pairs; ++pair) {
      const auto one = static_cast<std::int32_t>(coins.index(kWorldDocs));
      const auto other = static_cast<std::int32_t>((one + 1 + coins.index(kWorldDocs - 1)) % kWorldDocs);
      const double z = 8.0 * hidden.dot(doc(one) - doc(other));
      const bool wins = coins.uniform() < 1.0 / (1.0 + std::exp(-z));
      made.push_back(wins ? PreferencePair{one, other} : PreferencePair{other, one});
      seen.push_back(doc(made.back().winner) - doc(made.back().loser));
    }
    return made;
  }
  Feedback feedback(std::uint32_t round) const {
    return {round, {0, 0, {values.data(), kWorldDocs, kValues}}, {}, {}};
  }
};

/// Returns the gradient of the pairs seen and the prior, pair by pair.
Eigen::VectorXd gradient_at(const Preferences& world, const Eigen::VectorXd& theta) {
  Eigen::VectorXd gradient = kPrior * theta;
  for (const auto& seen : world.seen) gradient -= seen / (1.0 + std::exp(seen.dot(theta)));
  return gradient;
}

Eigen::VectorXd optimum(const Preferences& world) {
  Eigen::VectorXd theta = Eigen::VectorXd::Zero(kValues);
  for (int step = 0; step < 30; ++step) {
    Eigen::MatrixXd hessian = kPrior * Eigen::MatrixXd::Identity(kValues, kValues);
    for (const auto& seen : world.seen) {
      const double p = 1.0 / (1.0 + std::exp(-seen.dot(theta)));
      hessian += p * (1.0 - p) * seen * seen.transpose();
    }
    theta -= hessian.ldlt().solve(gradient_at(world, theta));
  }
  return theta;
}

RankerSettings growth_settings() {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kPairRank, ProtocolName::kRecommended);
  settings.posterior.lambda = kPrior;
  settings.trainer.retrain = Retrain::kGrowth;
  settings.trainer.newton_tolerance = 1e-9;
  settings.trainer.replay = 32;
  return settings;
}

std::unique_ptr<ModelLearner> make_learner(const RankerSettings& settings,
                                           const std::optional<EnsembleSpec>& ensemble = {},
                                           std::uint64_t seed = 1) {
  return make_linear_learner(kValues, settings, TrialKeys::of(seed, 1, "test"), ensemble);
}

Eigen::VectorXd theta_of(const ModelLearner& learner, std::size_t member = 0) {
  const std::vector<float>& theta = learner.thetas()[member];
  return Eigen::Map<const Eigen::VectorXf>(theta.data(), std::ssize(theta)).cast<double>();
}

void play(ModelLearner& learner, ExecutionContext& context, Preferences& world, std::uint32_t round,
          int pairs = 3) {
  learner.observe(world.feedback(round), {world.next(pairs)});
  learner.train(context, round);
}

/// Rewards of 2, 3, … and examination that makes clicks count as much. Widths are those of plain clicks.
TEST(LinearLearnerTest, WeightedClicksCountAsPairsRepeatedByHand) {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kPairRank, ProtocolName::kRecommended);
  settings.posterior.lambda = kPrior;
  settings.feedback.pairs = PairRule::kAll;
  const TrialKeys keys = TrialKeys::of(1, 1, "test");
  const auto clicked = make_ranker(settings, kValues, keys, 8);
  const auto rewarded = make_ranker(settings, kValues, keys, 8);
  const auto of_rewards = make_learner(settings);
  const auto of_examination = make_learner(settings);
  settings.feedback.debias = {1.0, 0.5, 0.25};
  const auto debiased = make_ranker(settings, kValues, keys, 8);
  const Preferences world(3);
  RngStream coins(make_key({.seed = 93, .purpose = Purpose::kProbe}), 0);
  TestContext context;
  for (std::uint32_t round = 1; round <= 40; ++round) {
    ShownDocs shown = shuffled(coins, kWorldDocs);
    shown.resize(8);
    std::vector<std::uint8_t> clicks;
    std::vector<double> rewards;
    for (std::size_t rank = 0; rank < shown.size(); ++rank) {
      clicks.push_back(static_cast<std::uint8_t>(coins.index(2)));
      rewards.push_back(clicks.back() != 0 ? 1.0 + coins.index(4) : 0.0);
    }
    const QueryDocs query = world.feedback(round).query;
    const Feedback feedback{round, query, shown, clicks, rewards};
    clicked->learn(context.round, {round, query, shown, clicks});
    rewarded->learn(context.round, feedback);
    debiased->learn(context.round, {round, query, shown, clicks});
    LossPairs by_reward;
    LossPairs by_rank;
    const auto examined = static_cast<std::size_t>(examined_documents(clicks));
    for (std::size_t winner = 0; winner < examined; ++winner) {
      for (std::size_t loser = 0; loser < examined; ++loser) {
        if (clicks[winner] == 0 || clicks[loser] != 0) continue;
        const PreferencePair pair{shown[winner], shown[loser]};
        by_reward.pairs.insert(by_reward.pairs.end(), static_cast<std::size_t>(rewards[winner]), pair);
        by_rank.pairs.insert(by_rank.pairs.end(), winner == 0 ? 1 : winner == 1 ? 2 : 4, pair);
      }
    }
    if (by_rank.pairs.empty()) continue;
    of_rewards->observe(feedback, by_reward);
    of_rewards->train(context.execution, round);
    of_examination->observe(feedback, by_rank);
    of_examination->train(context.execution, round);
  }
  EXPECT_EQ(flat_theta(*rewarded), of_rewards->thetas().front());
  EXPECT_EQ(flat_theta(*debiased), of_examination->thetas().front());
  EXPECT_NE(flat_theta(*rewarded), flat_theta(*clicked));
  EXPECT_NE(flat_theta(*debiased), flat_theta(*clicked));
  const auto widths = [&](OnlineRanker& ranker) {
    return detail_of(ranker, {0, 0, {world.values.data(), 20, kValues}}, 100).width_sq;
  };
  EXPECT_EQ(widths(*rewarded), widths(*clicked));
  EXPECT_EQ(widths(*debiased), widths(*clicked));
}

TEST(LinearLearnerTest, StaysAtTheOptimumBetweenTrainingsOnTheHistory) {
  ExecutionContext context;
  RankerSettings settings = growth_settings();
  settings.trainer.retrain_growth = 0.2;
  const auto learner = make_learner(settings);
  settings.trainer.replay_steps = 0;
  const auto waiting = make_learner(settings);
  Preferences world(0);
  Preferences same(0);
  std::int64_t trained_at = 0;
  int trainings = 0;
  int waits = 0;
  double error = 0.0;
  double left_behind = 0.0;
  for (std::uint32_t round = 1; round <= 250; ++round) {
    const Eigen::VectorXd before = theta_of(*waiting);
    play(*learner, context, world, round);
    play(*waiting, context, same, round);
    // Nearly all pairs are distinct, so that the history grows by a fifth with as many pairs.
    const bool whole = (theta_of(*waiting) - before).norm() > 0.0;
    const auto observed = std::ssize(world.seen);
    const Eigen::VectorXd best = optimum(world);
    if (observed < 200) {
      ASSERT_TRUE(whole);
    }
    if (whole) {
      ASSERT_TRUE((theta_of(*waiting) - best).norm() <= 1e-5);
      ASSERT_TRUE((theta_of(*learner) - best).norm() <= 1e-5);
      if (observed >= 200) {
        ASSERT_GE(static_cast<double>(observed - trained_at), 0.19 * static_cast<double>(trained_at));
        ++trainings;
      }
      trained_at = observed;
    } else {
      ++waits;
      error += (theta_of(*learner) - best).norm() / best.norm();
      left_behind += (theta_of(*waiting) - best).norm() / best.norm();
    }
  }
  EXPECT_GE(trainings, 5);
  EXPECT_LE(trainings, 15);
  EXPECT_GT(waits, 150);
  // The error is of third order in what the optimum moves.
  EXPECT_LE(error, 0.1 * left_behind) << error << ", " << left_behind;
  EXPECT_GT(left_behind, 0.01 * waits);
}

TEST(LinearLearnerTest, MembersWithoutNoiseAreTheSingleModel) {
  ExecutionContext context;
  const auto single = make_learner(growth_settings());
  const auto ensemble = make_learner(growth_settings(), EnsembleSpec{2, 0.0});
  Preferences world(1);
  Preferences same(1);
  for (std::uint32_t round = 1; round <= 150; ++round) {
    play(*single, context, world, round);
    play(*ensemble, context, same, round);
    for (const std::size_t member : {0, 1})
      ASSERT_TRUE((theta_of(*ensemble, member) - theta_of(*single)).norm() == 0.0) << round;
  }
}

// Between two trainings on the history, as after one, the gradient over unperturbed labels is Σ_s γ_s x_s,
// normal with covariance ν² Σ_s x_s x_sᵀ; each pair has its own draw, and each member.
TEST(LinearLearnerTest, NewPairsOfMembersHaveTheirOwnNoise) {
  ExecutionContext context;
  RankerSettings settings = growth_settings();
  settings.trainer.retrain_growth = 1.0;
  constexpr double kVariance = 0.01;
  double squares[2] = {0.0, 0.0};
  double between = 0.0;
  double freedom = 0.0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const auto learner = make_learner(settings, EnsembleSpec{2, kVariance}, seed);
    Preferences world(2);
    for (std::uint32_t round = 1; round <= 16; ++round) play(*learner, context, world, round, 25);
    Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(kValues, kValues);
    for (const Eigen::VectorXd& x : world.seen) gram += kVariance * x * x.transpose();
    const Eigen::LLT<Eigen::MatrixXd> root(gram);
    Eigen::VectorXd whitened[2];
    for (const std::size_t member : {0, 1}) {
      whitened[member] = root.matrixL().solve(gradient_at(world, theta_of(*learner, member)));
      squares[member] += whitened[member].squaredNorm();
    }
    between += whitened[0].dot(whitened[1]);
    freedom += static_cast<double>(kValues);
  }
  // χ² bounds of Laurent and Massart 2000, Lemma 1, e⁻²³ = 10⁻¹⁰ a side; sums of products of independent
  // normals, at 200 of them, pass 7 deviations with less than 10⁻⁷ a side.
  for (const double square : squares) {
    EXPECT_TRUE(square <= chi_square_bound(freedom, kTail)) << square << ", " << freedom;
    EXPECT_TRUE(square >= chi_square_lower_bound(freedom, kTail)) << square << ", " << freedom;
  }
  EXPECT_TRUE(std::fabs(between) <= 7.0 * std::sqrt(freedom)) << between;
}

TEST(LinearLearnerTest, EnsemblesTrainWithoutPairsUnlessOnASchedule) {
  ExecutionContext context;
  RankerSettings settings = growth_settings();
  for (const Retrain retrain : {Retrain::kEveryRound, Retrain::kGrowth}) {
    settings.trainer.retrain = retrain;
    const bool every_round = retrain == Retrain::kEveryRound;
    const auto single = make_learner(settings);
    const auto ensemble = make_learner(settings, EnsembleSpec{2, 0.1});
    EXPECT_FALSE(ensemble->trains_without_pairs());  // there is nothing yet
    Preferences world(3);
    Preferences same(3);
    play(*single, context, world, 1);
    play(*ensemble, context, same, 1);
    EXPECT_FALSE(single->trains_without_pairs());
    EXPECT_EQ(ensemble->trains_without_pairs(), every_round);
    const Eigen::VectorXd before = theta_of(*ensemble);
    ensemble->train(context, 2);
    EXPECT_GT((theta_of(*ensemble) - before).norm(), 1e-3);
  }
}

}  // namespace
}  // namespace olrank
