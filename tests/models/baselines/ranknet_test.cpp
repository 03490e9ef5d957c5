#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/math/pair_loss.h"
#include "models/baselines/baselines.h"
#include "models/labels/label_objective.h"
#include "models/linear/linear_belief.h"
#include "models/ranker_factory.h"
#include "tests/models/neural/plain_training.h"
#include "tests/models/small_world.h"
#include "tests/support/chi_square.h"
#include "tests/support/message_of.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

using Docs = std::vector<std::int32_t>;
using Clicks = std::vector<std::uint8_t>;

PhiloxKey ranknet_key() {
  return make_key({.seed = 1, .purpose = Purpose::kList});
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
    for (const PreferencePair& pair : pairs)
      sum +=
          logistic_loss(dot(at, query.features.doc(pair.winner)) - dot(at, query.features.doc(pair.loser)));
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
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { make_bandit(settings, 3); }), "--epsilon"));
}

TEST(EpsilonGreedyTest, ListsHaveTheirExactProbabilities) {
  const Docs best_first = {2, 0, 3, 1};
  for (const double epsilon : {0.3, 1.0}) {
    const auto probability_of = [&](const Docs& list) {
      double probability = 1.0;
      Docs remaining = best_first;
      for (const std::int32_t doc : list) {
        const bool best = doc == remaining.front();
        probability *= (best ? 1 - epsilon : 0.0) + epsilon / static_cast<double>(remaining.size());
        std::erase(remaining, doc);
      }
      return probability;
    };
    Scratch scratch;
    std::vector<double> propensity(best_first.size());
    EXPECT_TRUE(orders_follow(4, 200'000, probability_of, [&](std::uint32_t round, Docs& list) {
      epsilon_greedy_list(best_first, epsilon, ranknet_key(), round, scratch, list, propensity);
    })) << epsilon;
  }
}

RankerSettings offline_settings(NetworkForm network) {
  RankerSettings settings =
      RankerSettings::defaults(RankerKind::kRankNetOffline, ProtocolName::kRecommended);
  settings.name = "offline";
  settings.network.network = network;
  settings.network.width = 8;
  settings.trainer.batch = 4;
  return settings;
}

TEST(RankNetOfflineTest, StepsMatchAdamOnTheMeanLossOfAllPairs) {
  const LabelledWorld world(5, 3, 7, 4);
  Dataset::Contents contents = world.data().contents();
  std::vector<std::uint8_t> grades(contents.grades.begin(), contents.grades.end());
  grades.front() = 2;  // so that queries differ in their number of pairs
  contents.grades = grades;
  const Dataset data(std::move(contents));
  const LabelledQueries labels(data);
  RankerSettings settings = offline_settings(NetworkForm::kLinear);
  settings.trainer.epochs = 20;
  settings.trainer.batch = 1'000'000;
  settings.trainer.learning_rate_decay = 1.0;
  const LinearModel model(4);
  std::vector<double> theta = {0.5, -1.0, 2.0, 0.25};
  const std::vector<float> moved = train_offline(
      model, labels, settings, make_key({.purpose = Purpose::kBatch}), {theta.begin(), theta.end()});
  LabelObjective objective(model, labels, {.loss = ListLoss::kRankNet, .pair_mean = true}, 1);
  std::vector<double> gradient(4);
  PlainAdam adam(4);
  for (int step = 0; step < 20; ++step) {
    objective.mean_of_all(std::vector<float>(theta.begin(), theta.end()), gradient);
    adam.step(settings.trainer.learning_rate, gradient, theta);
  }
  for (std::size_t k = 0; k < 4; ++k) EXPECT_NEAR(moved[k], theta[k], 1e-6);  // moved is rounded to float
}

TEST(RankNetOfflineTest, TrainsBeforeTheFirstRoundOnly) {
  const LabelledWorld world(6, 40, 30, 5);
  const LabelledQueries labels = world.labels();
  for (const NetworkForm network : {NetworkForm::kLinear, NetworkForm::kMlp}) {
    RankerSettings settings = offline_settings(network);
    settings.trainer.epochs = 60;
    settings.trainer.learning_rate_decay = 1.0;
    const auto ranker = make_ranker(settings, 5, TrialKeys::of(1, 1, "test"), 10, {.labels = &labels});
    EXPECT_GT(world.ndcg(*ranker, 5), 0.97);
    TestContext context;
    const std::string before = state_of(*ranker);
    const std::vector<float> theta = theta_of(*ranker);
    const QueryDocs query = query_docs(labels, 0);
    const Docs shown = shown_of(ranker->rank(context.round, query, 1), 2);
    EXPECT_TRUE(ranker->learn(context.round, {1, query, shown, Clicks{0, 1}}).pairs.empty());
    EXPECT_EQ(theta_of(*ranker), theta);

    settings.trainer.epochs = 1;
    const auto other = make_ranker(settings, 5, TrialKeys::of(2, 1, "test"), 10, {.labels = &labels});
    EXPECT_NE(theta_of(*other), theta);
    load_state(*other, before);
    EXPECT_EQ(theta_of(*other), theta);
  }
}

TEST(RankNetOfflineTest, RefusesOtherOptimizers) {
  RankerSettings settings = offline_settings(NetworkForm::kLinear);
  settings.trainer.optimizer = Optimizer::kNesterov;
  EXPECT_THROW(check_ranker(settings, 10), InvalidArgument);
}

RankerSettings skyline_settings() {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kLambdaRankLabels, ProtocolName::kPaper);
  settings.name = "sky";
  settings.network.network = NetworkForm::kLinear;
  settings.trainer.learning_rate = 0.05;
  return settings;
}

/// Rounds with clicks that prefer the last document shown: a ranker that learned from them would get worse.
/// Returns the number of rounds that report a step.
std::size_t play(OnlineRanker& ranker, const LabelledQueries& labels, std::uint32_t last,
                 std::int64_t queries = 15) {
  TestContext context;
  std::size_t steps = 0;
  for (std::uint32_t round = 1; round <= last; ++round) {
    const QueryDocs query = query_docs(labels, round % queries);
    const Docs shown = shown_of(ranker.rank(context.round, query, round), 10);
    Clicks clicks(10, 0);
    clicks.back() = 1;
    const LearnReport report = ranker.learn(context.round, {round, query, shown, clicks});
    EXPECT_TRUE(report.pairs.empty());
    steps += report.steps.size();
  }
  return steps;
}

TEST(LambdaRankLabelsTest, FitsTheGradesOfAllQueriesAskedSoFar) {
  const LabelledWorld world(3, 30, 12, 5);
  const LabelledQueries labels = world.labels();
  const auto ranker =
      make_ranker(skyline_settings(), 5, TrialKeys::of(1, 1, "test"), 10, {.labels = &labels});
  EXPECT_LT(world.ndcg(*ranker, 5), 0.75);
  play(*ranker, labels, 200);
  // Only queries 0 to 14 were asked, and they tell what relevance means.
  EXPECT_GT(world.ndcg(*ranker, 5), 0.95);
}

TEST(LambdaRankLabelsTest, TrainsANewModelInEachRoundFromTheFirstParameters) {
  const LabelledWorld world(4, 15, 12, 5);
  const LabelledQueries labels = world.labels();
  RankerSettings settings = skyline_settings();
  settings.trainer.steps = 3;
  settings.trainer.restart = Restart::kFirst;
  const auto ranker = make_ranker(settings, 5, TrialKeys::of(1, 1, "test"), 10, {.labels = &labels});
  play(*ranker, labels, 2);
  // The first round asked query 1, the second query 2: three Adam steps on them from 0 follow from these
  // rounds alone.
  const auto batch_key = make_key({.seed = 1, .purpose = Purpose::kBatch, .fold = 1});
  std::vector<float> theta(5, 0.0F);
  PlainAdam adam(5);
  Scratch scratch;
  for (std::uint32_t step = 0; step < 3; ++step) {
    RngStream draws(batch_key, 2, step);
    std::vector<double> gradient(5, 0.0);
    for (int drawn = 0; drawn < 2; ++drawn) {
      const std::int64_t query = 1 + draws.index_of(2);
      const QueryDocs docs = query_docs(labels, query);
      std::vector<double> scores(12);
      std::vector<double> slopes(12);
      for (std::int32_t doc = 0; doc < 12; ++doc)
        scores[doc] = dot(in_double(theta), docs.features.doc(doc));
      list_loss({.loss = ListLoss::kLambdaRank}, scores, labels.grades_of(query).of_doc, scratch, slopes);
      for (std::int32_t doc = 0; doc < 12; ++doc) {
        for (std::size_t k = 0; k < 5; ++k) gradient[k] += 0.5 * slopes[doc] * docs.features.doc(doc)[k];
      }
    }
    adam.step(0.05, gradient, theta);
  }
  for (std::size_t k = 0; k < 5; ++k) EXPECT_NEAR(theta_of(*ranker)[k], theta[k], 1e-5) << k;
  settings.trainer.restart = Restart::kFresh;
  EXPECT_THROW(check_ranker(settings, 10), InvalidArgument);
}

TEST(LambdaRankLabelsTest, RefusesAQueryWithoutGrades) {
  const LabelledWorld world(3, 2, 12, 5);
  const LabelledQueries labels = world.labels();
  const auto ranker =
      make_ranker(skyline_settings(), 5, TrialKeys::of(1, 1, "test"), 10, {.labels = &labels});
  TestContext context;
  QueryDocs query = query_docs(labels, 1);
  query.query = 2;
  EXPECT_THROW(ranker->learn(context.round, {1, query, Docs{0}, Clicks{1}}), InvalidArgument);
}

TEST(LambdaRankLabelsTest, OnlyKindsThatLearnFromLabelsRequireThem) {
  EXPECT_TRUE(row_of(RankerKind::kLambdaRankLabels).needs_labels);
  for (const auto& [kind, name] : EnumNames<RankerKind>::values) {
    if (row_of(kind).is_external) continue;  // none is registered
    RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kPaper);
    settings.name = std::string(name);
    check_ranker(settings, 10);
    if (row_of(kind).needs_labels) {
      EXPECT_THROW(make_ranker(settings, 3, TrialKeys{}, 10), InvalidArgument) << name;
    } else {
      EXPECT_GT(make_ranker(settings, 3, TrialKeys{}, 10)->parameters(), 0) << name;
    }
  }
}

}  // namespace
}  // namespace olrank
