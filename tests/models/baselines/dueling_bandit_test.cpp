#include "models/baselines/dueling_bandit.h"

#include <gtest/gtest.h>

#include "tests/models/small_world.h"

namespace olrank {
namespace {

using Docs = std::vector<std::int32_t>;
using Clicks = std::vector<std::uint8_t>;

constexpr std::int64_t kDocs = 12;
constexpr std::int64_t kFeatures = 4;

/// A round by the text of the papers, computed separately: directions, rankings, the shared list.
struct Expected {
  std::vector<std::vector<double>> directions;
  Docs rankings;
  Docs list = Docs(kDocs);
  Docs teams = Docs(kDocs);
};

Expected draft(const std::vector<float>& theta, const RankerSettings& settings, std::size_t candidates,
               const QueryDocs& query, std::uint32_t round) {
  Expected made;
  const TrialKeys keys = TrialKeys::of(1, 1, "test");
  for (std::size_t ranker = 0; ranker <= candidates; ++ranker) {
    std::vector<double> tried(theta.begin(), theta.end());
    if (ranker > 0) {
      std::vector<double> direction(kFeatures);
      RngStream(keys.key(Purpose::kDirection), round, static_cast<std::uint32_t>(ranker - 1))
          .unit_vector(direction);
      for (std::size_t k = 0; k < tried.size(); ++k) {
        tried[k] += settings.bandit.exploration_radius * direction[k];
      }
      made.directions.push_back(direction);
    }
    std::vector<double> scores;
    for (std::int64_t doc = 0; doc < kDocs; ++doc) {
      scores.push_back(
          std::inner_product(tried.begin(), tried.end(), query.features.doc(doc).begin(), 0.0));
    }
    Docs ranking(kDocs);
    std::iota(ranking.begin(), ranking.end(), 0);
    std::stable_sort(ranking.begin(), ranking.end(),
                     [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
    made.rankings.insert(made.rankings.end(), ranking.begin(), ranking.end());
  }
  Scratch scratch;
  team_draft({made.rankings, candidates + 1, kDocs}, keys.key(Purpose::kInterleaving), round, scratch,
             made.list, made.teams);
  return made;
}

TEST(DuelingBanditTest, MovesToTheCandidateWhenItsTeamWins) {
  const SmallWorld world(1, 5, kDocs, kFeatures);
  RankerSettings settings = bandit_settings("dbgd_team_draft");
  settings.bandit.exploration_radius = 0.5;
  settings.trainer.learning_rate = 0.25;
  settings.trainer.learning_rate_decay = 0.9;
  const auto ranker = make_bandit(settings, kFeatures);
  TestContext context;
  int wins = 0;
  for (std::uint32_t round = 1; round <= 60; ++round) {
    const QueryDocs query = world.query_of(round);
    const std::vector<float> before = theta_of(*ranker);
    const Expected expected = draft(before, settings, 1, query, round);
    const RankedList list = ranker->rank(context.round, query, round);
    ASSERT_EQ(Docs(list.docs.begin(), list.docs.end()), expected.list);
    const Docs shown(list.docs.begin(), list.docs.begin() + 6);
    Clicks clicks(6, 0);
    clicks[round % 6] = 1;
    const bool wins_now = expected.teams[round % 6] == 1;
    wins += wins_now ? 1 : 0;
    const LearnReport report = ranker->learn(context.round, {round, query, shown, clicks});
    EXPECT_TRUE(report.pairs.empty());
    EXPECT_TRUE(report.steps.empty());
    const double step = 0.25 * std::pow(0.9, round - 1);
    for (std::size_t k = 0; k < kFeatures; ++k) {
      const double moved = before[k] + (wins_now ? step * expected.directions[0][k] : 0.0);
      ASSERT_EQ(theta_of(*ranker)[k], static_cast<float>(moved)) << round;
    }
  }
  EXPECT_GT(wins, 10);
  EXPECT_LT(wins, 50);
}

TEST(DuelingBanditTest, DrawsChangeNothing) {
  const SmallWorld world(2, 5, kDocs, kFeatures);
  const RankerSettings settings = bandit_settings("dbgd_team_draft");
  const auto ranker = make_bandit(settings, kFeatures);
  TestContext context;
  const RankedList list = ranker->rank(context.round, world.query(0), 1);
  // The first two documents of a list are of different teams.
  const Docs shown(list.docs.begin(), list.docs.begin() + 4);
  ranker->learn(context.round, {1, world.query(0), shown, Clicks{1, 1, 0, 0}});
  EXPECT_EQ(theta_of(*ranker), std::vector<float>(kFeatures, 0.0F));
}

TEST(DuelingBanditTest, ManyCandidatesMoveByTheMeanOfTheWinners) {
  const SmallWorld world(3, 5, kDocs, kFeatures);
  RankerSettings settings = bandit_settings("mgd_team_draft");
  settings.trainer.learning_rate = 0.25;
  ASSERT_EQ(settings.bandit.candidates, 9);
  const auto ranker = make_bandit(settings, kFeatures);
  TestContext context;
  int rounds_of_several = 0;
  for (std::uint32_t round = 1; round <= 40; ++round) {
    const QueryDocs query = world.query_of(round);
    const std::vector<float> before = theta_of(*ranker);
    const Expected expected = draft(before, settings, 9, query, round);
    const RankedList list = ranker->rank(context.round, query, round);
    ASSERT_EQ(Docs(list.docs.begin(), list.docs.end()), expected.list);
    const Docs shown(list.docs.begin(), list.docs.end());
    Clicks clicks(kDocs, 0);
    std::vector<int> counts(10, 0);
    for (const std::uint32_t rank : {round % 12, (5 * round + 1) % 12, (7 * round + 3) % 12}) {
      if (clicks[rank] != 0) continue;
      clicks[rank] = 1;
      ++counts[expected.teams[rank]];
    }
    std::vector<double> sum(kFeatures, 0.0);
    int winners = 0;
    for (std::size_t candidate = 1; candidate <= 9; ++candidate) {
      if (counts[candidate] <= counts[0]) continue;
      ++winners;
      for (std::size_t k = 0; k < kFeatures; ++k) sum[k] += expected.directions[candidate - 1][k];
    }
    rounds_of_several += winners > 1 ? 1 : 0;
    ranker->learn(context.round, {round, query, shown, clicks});
    for (std::size_t k = 0; k < kFeatures; ++k) {
      const double moved = before[k] + (winners > 0 ? 0.25 * (sum[k] / winners) : 0.0);
      ASSERT_EQ(theta_of(*ranker)[k], static_cast<float>(moved)) << round;
    }
  }
  EXPECT_GT(rounds_of_several, 10);
}

TEST(DuelingBanditTest, ProbabilisticCreditFollowsTheRankersOrders) {
  // A click on the document that the candidate ranks first and the current ranker last is the candidate's,
  // and the other way round.
  const std::vector<float> values = {0.0F, 1.0F, 2.0F, 3.0F};
  const QueryDocs query{0, 0, {values.data(), 4, 1}};
  RankerSettings settings = bandit_settings("dbgd_probabilistic");
  settings.bandit.exploration_radius = 10.0;
  TestContext context;
  for (std::uint32_t round = 1; round <= 10; ++round) {
    std::vector<double> direction(1);
    RngStream(TrialKeys::of(1, 1, "test").key(Purpose::kDirection), round, 0).unit_vector(direction);
    const auto against = static_cast<float>(-direction[0]);  // the current ranker, overruled by the radius
    for (const bool candidates_best : {true, false}) {
      const auto ranker = make_bandit(settings, 1, {against});
      const std::int32_t clicked = (direction[0] > 0) == candidates_best ? 3 : 0;
      ranker->learn(context.round, {round, query, Docs{clicked, 1, 2}, Clicks{1, 0, 0}});
      const double step = candidates_best ? settings.trainer.learning_rate : 0.0;
      EXPECT_FLOAT_EQ(theta_of(*ranker)[0], static_cast<float>(against + step * direction[0]));
    }
  }
}

}  // namespace
}  // namespace olrank
