#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/metrics/list_metrics.h"
#include "core/online/online_ranker.h"
#include "models/baselines/baselines.h"
#include "models/baselines/pdgd.h"
#include "models/ranker_factory.h"
#include "tests/models/small_world.h"
#include "tests/support/chi_square.h"
#include "tests/support/saved_state.h"

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

}  // namespace
}  // namespace olrank

// The propensities of lists are the frequencies with which they are drawn.

namespace olrank {
namespace {

constexpr std::int64_t kWorldDocs = 5;
constexpr std::int64_t kShown = 3;
constexpr std::uint32_t kLists = 100'000;

struct Case {
  const char* name;
  RankerKind kind;
  ListRule list = ListRule::kCertain;
  double epsilon = 0.0;
  bool taught = true;  // else all scores tie
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

class PropensityTest : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<OnlineRanker> make() {
    const Case& one = GetParam();
    RankerSettings settings = RankerSettings::defaults(one.kind, ProtocolName::kPaper);
    settings.name = one.name;
    settings.network.width = 4;
    settings.trainer.steps = 5;
    settings.explore.list = one.list;
    settings.explore.alpha = 1.0;
    settings.posterior.members = 3;
    if (one.epsilon > 0.0) {
      settings.bandit.exploration = SimpleExploration::kEpsilon;
      settings.bandit.epsilon = one.epsilon;
    }
    auto ranker = make_ranker(settings, world_.features(), TrialKeys::of(3, 1, "propensity"), kShown);
    for (std::uint32_t round = 1; one.taught && round <= 6; ++round) {
      const QueryDocs query = world_.query_of(round);
      const std::vector<std::int32_t> shown = {static_cast<std::int32_t>(round % kWorldDocs),
                                               static_cast<std::int32_t>((round + 2) % kWorldDocs),
                                               static_cast<std::int32_t>((round + 3) % kWorldDocs)};
      ranker->learn(context_.round, {round, query, shown, world_.perfect_clicks(query.query, shown)});
    }
    return ranker;
  }

  SmallWorld world_{17, 4, kWorldDocs, 3};
  TestContext context_;
};

TEST_P(PropensityTest, IsTheFrequencyOfTheList) {
  const auto ranker = make();
  const QueryDocs query = world_.query_of(2);
  struct Prefix {
    std::int64_t count = 0;
    std::vector<double> propensity;
  };
  std::map<std::vector<std::int32_t>, Prefix> seen;
  for (std::uint32_t round = 100; round < 100 + kLists; ++round) {
    const RankedList list = ranker->rank(context_.round, query, round);
    ASSERT_GE(list.propensity.size(), static_cast<std::size_t>(kShown));
    Prefix& prefix = seen[{list.docs.begin(), list.docs.begin() + kShown}];
    const std::vector<double> propensity(list.propensity.begin(), list.propensity.begin() + kShown);
    if (prefix.count++ == 0) prefix.propensity = propensity;
    for (std::size_t rank = 0; rank < propensity.size(); ++rank)
      ASSERT_NEAR(propensity[rank], prefix.propensity[rank], 1e-12);
  }
  std::vector<std::int64_t> counts;
  std::vector<double> probabilities;
  double total = 0.0;
  for (const auto& [docs, prefix] : seen) {
    counts.push_back(prefix.count);
    probabilities.push_back(prefix.propensity[0] * prefix.propensity[1] * prefix.propensity[2]);
    total += probabilities.back();
  }
  EXPECT_LE(total, 1.0 + 1e-9);
  EXPECT_GE(total, 0.999);  // what was not seen is rare
  counts.push_back(0);
  probabilities.push_back(std::max(0.0, 1.0 - total));
  EXPECT_TRUE(counts_follow(counts, probabilities, kTail));
}

TEST_P(PropensityTest, IsThatOfTheSnapshot) {
  const auto ranker = make();
  const auto frozen = ranker->freeze();
  if (!frozen) GTEST_SKIP() << "this kind has no snapshots";
  const QueryDocs query = world_.query_of(2);
  Ranking ranking;
  for (std::uint32_t round = 100; round < 120; ++round) {
    const RankedList list = ranker->rank(context_.round, query, round);
    const std::vector<double> expected(list.propensity.begin(), list.propensity.end());
    frozen->rank(context_.execution, {query.features, kShown, round}, ranking);
    EXPECT_EQ(ranking.propensity, expected);
    frozen->rank(context_.execution, {query.features, kShown, round, false}, ranking);
    ASSERT_GE(ranking.propensity.size(), static_cast<std::size_t>(kShown));
    for (const double certain : ranking.propensity) EXPECT_EQ(certain, 1.0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, PropensityTest,
    testing::Values(Case{"certain", RankerKind::kPairRank, ListRule::kCertain},
                    Case{"blocks", RankerKind::kPairRank, ListRule::kBlocks},
                    Case{"blocks-certain", RankerKind::kPairRank, ListRule::kBlocksCertain},
                    Case{"greedy", RankerKind::kPairRank, ListRule::kGreedy},
                    Case{"votes", RankerKind::kP2LinRank, ListRule::kCertain},
                    Case{"pdgd", RankerKind::kPdgd},
                    Case{"pdgd-ties", RankerKind::kPdgd, ListRule::kCertain, 0.0, false},
                    Case{"epsilon", RankerKind::kRankNet, ListRule::kCertain, 0.3}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace olrank
