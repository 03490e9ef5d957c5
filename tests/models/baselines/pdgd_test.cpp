#include "models/baselines/pdgd.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/models/small_world.h"

namespace olrank {
namespace {

using Docs = std::vector<std::int32_t>;
using Clicks = std::vector<std::uint8_t>;

TEST(PdgdTest, FollowsTheWeightedGradient) {
  const SmallWorld world(1, 3, 9, 4);
  const std::vector<float> theta = {0.5F, -1.0F, 2.0F, 0.25F};
  RankerSettings settings = bandit_settings("pdgd");
  settings.trainer.learning_rate = 0.3;
  settings.trainer.learning_rate_decay = 0.5;
  const auto ranker = make_bandit(settings, 4, theta);
  TestContext context;
  const QueryDocs query = world.query(2);
  // A round without a click moves nothing, but the step decays.
  ranker->learn(context.round, {1, query, Docs{0, 1}, Clicks{0, 0}});
  const Docs shown = {8, 1, 3, 0, 5};
  const Clicks clicks = {0, 1, 0, 1, 0};
  const LearnReport report = ranker->learn(context.round, {2, query, shown, clicks});
  EXPECT_EQ(std::vector<PreferencePair>(report.pairs.begin(), report.pairs.end()),
            (std::vector<PreferencePair>{{1, 8}, {1, 3}, {1, 5}, {0, 8}, {0, 3}, {0, 5}}));
  EXPECT_TRUE(report.steps.empty());

  std::vector<double> scores;
  for (std::int64_t doc = 0; doc < 9; ++doc) {
    double sum = 0.0;
    for (std::size_t k = 0; k < 4; ++k) sum += theta[k] * query.features.doc(doc)[k];
    scores.push_back(sum);
  }
  std::vector<double> weights(9);
  Scratch scratch;
  plackett_luce_pair_weights(scores, shown, clicks, scratch, weights);
  const std::vector<float> moved = theta_of(*ranker);
  for (std::size_t k = 0; k < 4; ++k) {
    double gradient = 0.0;
    for (std::int64_t doc = 0; doc < 9; ++doc) {
      gradient += weights[doc] * query.features.doc(doc)[k];
    }
    // The ranker's scores are rounded to float: relative 6e-8 of each of a few terms of size 2.
    EXPECT_NEAR(moved[k], theta[k] + 0.15 * gradient, 1e-6);
  }
}

TEST(PdgdTest, RefusesAStepThatWouldOverflowScoresAndKeepsParameters) {
  const SmallWorld world(1, 3, 9, 4);
  const std::vector<float> theta = {0.5F, -1.0F, 2.0F, 0.25F};
  RankerSettings settings = bandit_settings("pdgd");
  settings.trainer.learning_rate = 1e30;
  const auto ranker = make_bandit(settings, 4, theta);
  TestContext context;
  EXPECT_THROW(ranker->learn(context.round, {1, world.query(2), Docs{8, 1, 3}, Clicks{0, 1, 0}}),
               NumericError);
  EXPECT_EQ(theta_of(*ranker), theta);
}

TEST(PdgdTest, ListsDependOnScoresNotHistory) {
  // The same parameters give the same list, however they were come by.
  const SmallWorld world(2, 3, 20, 4);
  const std::vector<float> theta = {0.5F, -1.0F, 2.0F, 0.25F};
  const auto one = make_bandit(bandit_settings("pdgd"), 4, theta);
  const auto other = make_bandit(bandit_settings("pdgd"), 4, theta);
  TestContext context;
  for (std::uint32_t round = 1; round < 7; ++round) other->rank(context.round, world.query(1), round);
  const RankedList expected = one->rank(context.round, world.query(0), 7);
  const RankedList list = other->rank(context.round, world.query(0), 7);
  EXPECT_TRUE(std::equal(expected.docs.begin(), expected.docs.end(), list.docs.begin()));
}

}  // namespace
}  // namespace olrank
