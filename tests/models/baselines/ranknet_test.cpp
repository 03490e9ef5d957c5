#include "models/baselines/ranknet.h"

#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "core/math/pair_loss.h"
#include "tests/models/small_world.h"
#include "tests/support/chi_square.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

using Docs = std::vector<std::int32_t>;
using Clicks = std::vector<std::uint8_t>;

PhiloxKey ranknet_key() {
  return make_key({.seed = 1, .purpose = Purpose::kList});
}

double dot(const std::vector<double>& theta, std::span<const float> doc) {
  double sum = 0.0;
  for (std::size_t k = 0; k < theta.size(); ++k) sum += theta[k] * doc[k];
  return sum;
}

TEST(RankNetTest, StepsAgainstTheGradientOfTheLoss) {
  const SmallWorld world(1, 3, 9, 4);
  const std::vector<double> theta = {0.5, -1.0, 2.0, 0.25};
  RankerSettings settings = bandit_settings("ranknet_greedy");
  settings.feedback.pairs = PairRule::kAll;
  settings.trainer.learning_rate = 0.3;
  settings.trainer.learning_rate_decay = 0.5;
  const auto ranker = make_bandit(settings, 4, {theta.begin(), theta.end()});
  TestContext context;
  const QueryDocs query = world.query(1);
  ranker->learn(context.round, {1, query, Docs{0, 1}, Clicks{0, 0}});
  const LearnReport report =
      ranker->learn(context.round, {2, query, Docs{8, 1, 3, 0, 5}, Clicks{0, 1, 0, 0, 0}});
  const std::vector<PreferencePair> pairs(report.pairs.begin(), report.pairs.end());
  EXPECT_EQ(pairs, (std::vector<PreferencePair>{{1, 8}, {1, 3}}));
  ASSERT_EQ(report.steps.size(), 1U);
  EXPECT_DOUBLE_EQ(report.steps[0], 0.15);

  const auto loss = [&](const std::vector<double>& at) {
    double sum = 0.0;
    for (const PreferencePair& pair : pairs) {
      sum +=
          logistic_loss(dot(at, query.features.doc(pair.winner)) - dot(at, query.features.doc(pair.loser)));
    }
    return sum;
  };
  const std::vector<float> moved = theta_of(*ranker);
  constexpr double kDelta = 1e-5;  // central differences: error about δ² plus 1e-16/δ
  for (std::size_t k = 0; k < 4; ++k) {
    std::vector<double> above = theta;
    std::vector<double> below = theta;
    above[k] += kDelta;
    below[k] -= kDelta;
    const double slope = (loss(above) - loss(below)) / (2 * kDelta);
    EXPECT_NEAR(moved[k], theta[k] - 0.15 * slope, 1e-6);  // scores and θ are rounded to float
  }
}

TEST(RankNetTest, AStepOnARewardIsThatOnItsCopies) {
  const SmallWorld world(1, 3, 9, 4);
  RankerSettings settings = bandit_settings("ranknet_greedy");
  settings.feedback.pairs = PairRule::kAll;
  const QueryDocs query = world.query(1);
  const Docs shown = {8, 1, 3, 0, 5};
  const Clicks clicks = {0, 1, 0, 0, 0};
  const std::vector<double> rewards = {0.0, 3.0, 0.0, 0.0, 0.0};
  const auto move_of = [&](std::vector<double> debias, std::span<const double> worth) {
    settings.feedback.debias = std::move(debias);
    const auto ranker = make_bandit(settings, 4, {0.5F, -1.0F, 2.0F, 0.25F});
    TestContext context;
    EXPECT_EQ(ranker->learn(context.round, {1, query, shown, clicks, worth}).pairs.size(), 2U);
    return theta_of(*ranker)[0] - 0.5;
  };
  const double once = move_of({}, {});
  EXPECT_GT(std::abs(once), 1e-4);
  EXPECT_EQ(move_of({1.0}, {}), once);
  EXPECT_NEAR(move_of({}, rewards), 3.0 * once, 1e-6);  // θ is rounded to float
  EXPECT_NEAR(move_of({1.0, 0.5}, rewards), 6.0 * once, 1e-6);
}

TEST(RankNetTest, GreedyListsFollowTheScores) {
  const std::vector<float> values = {1, 5, 3, 5, 2};
  const QueryDocs query{0, 0, {values.data(), 5, 1}};
  const auto ranker = make_bandit(bandit_settings("ranknet_greedy"), 1, {1.0F});
  TestContext context;
  const RankedList list = ranker->rank(context.round, query, 1);
  EXPECT_EQ(Docs(list.docs.begin(), list.docs.end()), (Docs{1, 3, 2, 4, 0}));
}

TEST(RankNetTest, RefusesExplorationWithoutEpsilon) {
  RankerSettings settings = bandit_settings("ranknet_greedy");
  EXPECT_EQ(settings.bandit.epsilon, 0.0);
  settings.bandit.exploration = SimpleExploration::kEpsilon;
  EXPECT_NE(message_of<InvalidArgument>([&] { make_bandit(settings, 3); }).find("--epsilon"),
            std::string::npos);
}

TEST(EpsilonGreedyTest, ListsHaveTheirExactProbabilities) {
  const Docs best_first = {2, 0, 3, 1};
  for (const double epsilon : {0.3, 1.0}) {
    std::map<Docs, std::int64_t> seen;
    std::vector<double> probabilities;
    Docs list = {0, 1, 2, 3};
    do {
      double probability = 1.0;
      Docs remaining = best_first;
      for (const std::int32_t doc : list) {
        const bool best = doc == remaining.front();
        probability *= (best ? 1 - epsilon : 0.0) + epsilon / static_cast<double>(remaining.size());
        std::erase(remaining, doc);
      }
      seen[list] = 0;
      probabilities.push_back(probability);
    } while (std::next_permutation(list.begin(), list.end()));
    Scratch scratch;
    std::vector<double> propensity(best_first.size());
    for (std::uint32_t round = 1; round <= 200'000; ++round) {
      epsilon_greedy_list(best_first, epsilon, ranknet_key(), round, scratch, list, propensity);
      ++seen.at(list);
    }
    std::vector<std::int64_t> counts;
    for (const auto& [order, count] : seen) counts.push_back(count);
    EXPECT_TRUE(counts_follow(counts, probabilities)) << epsilon;
  }
}

TEST(EpsilonGreedyTest, RanksByScoreWithoutEpsilon) {
  const Docs best_first = {2, 0, 3, 1};
  Docs list(4);
  Scratch scratch;
  std::vector<double> propensity(4);
  epsilon_greedy_list(best_first, 0.0, ranknet_key(), 1, scratch, list, propensity);
  EXPECT_EQ(list, best_first);
}

}  // namespace
}  // namespace olrank
