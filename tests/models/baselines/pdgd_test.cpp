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

using Docs = std::vector<std::int32_t>;
using Clicks = std::vector<std::uint8_t>;

const TrialKeys kKeys = TrialKeys::of(1, 1, "test");

RankerSettings settings_of(std::int64_t refresh_rounds) {
  RankerSettings settings = bandit_settings("intervention_aware");
  settings.trainer.learning_rate = 0.3;
  settings.bandit.refresh_rounds = refresh_rounds;
  return settings;
}

std::vector<double> scores_of(const std::vector<float>& theta, const QueryDocs& query) {
  std::vector<double> scores;
  for (std::int64_t doc = 0; doc < query.docs(); ++doc) {
    double sum = 0.0;
    for (std::size_t k = 0; k < theta.size(); ++k)
      sum += double{theta[k]} * double{query.features.doc(doc)[k]};
    scores.push_back(sum);
  }
  return scores;
}

Docs plackett_luce_list(const std::vector<float>& theta, const QueryDocs& query, std::uint32_t round) {
  const std::vector<double> scores = scores_of(theta, query);
  std::vector<double> keys(scores.size());
  plackett_luce_keys(scores, kKeys.key(Purpose::kList), round, keys);
  Docs list(scores.size());
  Scratch scratch;
  order_by_score(keys, list, scratch);
  return list;
}

TEST(DeployedPolicyTest, ShowsTheDeployedPolicyUntilItIsRefreshed) {
  const SmallWorld world(2, 3, 12, 4);
  const std::vector<float> theta = {0.5F, -1.0F, 2.0F, 0.25F};
  constexpr std::uint32_t kRefresh = 4;
  const auto ranker = make_bandit(settings_of(kRefresh), 4, theta);
  TestContext context;
  std::vector<float> safe = theta;
  int differ = 0;
  for (std::uint32_t round = 1; round <= 40; ++round) {
    const QueryDocs query = world.query_of(round);
    const RankedList list = ranker->rank(context.round, query, round);
    const Docs shown(list.docs.begin(), list.docs.end());
    EXPECT_EQ(shown, plackett_luce_list(safe, query, round)) << round;
    differ += shown == plackett_luce_list(theta_of(*ranker), query, round) ? 0 : 1;
    ranker->learn(context.round, {round, query, shown, world.perfect_clicks(query.query, shown)});
    if (round % kRefresh == 0) safe = theta_of(*ranker);
  }
  EXPECT_GT(differ, 3);
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
                    Case{"intervention-aware", RankerKind::kInterventionAware},
                    Case{"pdgd-ties", RankerKind::kPdgd, ListRule::kCertain, 0.0, false},
                    Case{"epsilon", RankerKind::kRankNet, ListRule::kCertain, 0.3}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

using Docs = std::vector<std::int32_t>;
using Clicks = std::vector<std::uint8_t>;
using Values = std::vector<double>;

constexpr std::int64_t kRanks = 2;
const Values kExamination = {1.0, 0.4};
const Values kRelevance = {0.8, 0.3, 0.6};

/// The lists of a policy and their probabilities.
std::vector<std::pair<Docs, double>> lists_of(const Values& scores) {
  std::vector<std::pair<Docs, double>> lists;
  Docs list(scores.size());
  std::iota(list.begin(), list.end(), 0);
  do {
    Values propensity;
    plackett_luce_propensity(scores, list, propensity);
    lists.emplace_back(list,
                       std::accumulate(propensity.begin(), propensity.end(), 1.0, std::multiplies<>()));
  } while (std::next_permutation(list.begin(), list.end()));
  return lists;
}

void add_all_places(const Values& scores, Values& places) {
  Scratch scratch;
  for (const auto& [list, probability] : lists_of(scores))
    add_places(scores, list, kRanks, probability, scratch, places);
}

/// What a user clicks at each rank with which probability: every case.
template <class Use>
void for_all_clicks(const Docs& list, Use use) {
  for (int bits = 0; bits < 1 << kRanks; ++bits) {
    double probability = 1.0;
    Clicks clicks;
    for (int rank = 0; rank < kRanks; ++rank) {
      const double click = kExamination[rank] * kRelevance[list[rank]];
      clicks.push_back((bits >> rank) & 1);
      probability *= clicks.back() != 0 ? click : 1.0 - click;
    }
    use(clicks, probability);
  }
}

TEST(InterventionAwareTest, EstimatesTheRewardOfAnotherPolicyWithoutBias) {
  // The first policy hardly ever shows document 1 at the top, and the second one intervenes.
  const std::vector<Values> policies = {{2.0, -2.0, 0.5}, {-0.5, 1.0, 0.0}};
  const Values candidate = {0.0, 0.5, 1.5};
  constexpr double kUsual = 0.45;
  ObservedQuery log;
  log.docs = {0, 1, 2};
  log.places.assign(log.docs.size() * kRanks, 0.0);
  for (const Values& scores : policies) add_all_places(scores, log.places);
  log.lists = 2;

  Values mean(3);
  double total = 0.0;
  for (const auto& [first, of_first] : lists_of(policies[0])) {
    for (const auto& [second, of_second] : lists_of(policies[1])) {
      for_all_clicks(first, [&, first = first, of_lists = of_first * of_second, second = second](
                                const Clicks& one, double of_one) {
        for_all_clicks(second, [&](const Clicks& other, double of_other) {
          log.clicks.assign(3, 0.0);
          for (int rank = 0; rank < kRanks; ++rank) {
            log.clicks[first[rank]] += one[rank];
            log.clicks[second[rank]] += other[rank];
          }
          Values relevance(3);
          estimate_relevance(log, kExamination, kUsual, 0.0, relevance);
          const double probability = of_lists * of_one * of_other;
          total += probability;
          for (int doc = 0; doc < 3; ++doc) mean[doc] += probability * relevance[doc];
        });
      });
    }
  }
  EXPECT_NEAR(total, 1.0, 1e-12);
  Values places(3 * kRanks);
  add_all_places(candidate, places);
  double reward = 0.0;
  double estimated = 0.0;
  for (int doc = 0; doc < 3; ++doc) {
    EXPECT_NEAR(mean[doc], kRelevance[doc] - kUsual, 1e-12) << doc;
    for (int rank = 0; rank < kRanks; ++rank) {
      reward += places[doc * kRanks + rank] * kExamination[rank] * kRelevance[doc];
      estimated += places[doc * kRanks + rank] * kExamination[rank] * (mean[doc] + kUsual);
    }
  }
  EXPECT_NEAR(estimated, reward, 1e-12);
}

TEST(InterventionAwareTest, ClipsWhatIsHardlyExamined) {
  ObservedQuery log;
  log.docs = {0, 1};
  log.clicks = {3.0, 1.0};
  log.places = {6.0, 0.0, 0.0, 0.5};  // 6 and 0.2 examinations
  log.lists = 10;
  Values relevance(2);
  estimate_relevance(log, kExamination, 0.25, 0.1, relevance);
  EXPECT_NEAR(relevance[0], 3.0 / 6.0 - 0.25, 1e-15);
  EXPECT_NEAR(relevance[1], 1.0 - 0.25 * 0.2, 1e-15);  // over 0.1 of 10 lists
}

/// A user who looks at ranks by coins of their own and clicks on a relevant document in nine of ten cases,
/// on another in one.
Clicks position_biased(const SmallWorld& world, const QueryDocs& query, const Docs& shown,
                       const Values& examination, std::uint32_t round) {
  Clicks clicks;
  RngStream coins(make_key({.seed = 7, .purpose = Purpose::kClick}), round);
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    const double click = world.grade(query.query, shown[rank]) != 0 ? 0.9 : 0.1;
    clicks.push_back(coins.uniform() < examination[rank] * click ? 1 : 0);
  }
  return clicks;
}

const Values kLooks = {1.0, 0.7, 0.4, 0.25, 0.15};

std::unique_ptr<OnlineRanker> played(const SmallWorld& world, const Values& debias, std::uint32_t rounds) {
  RankerSettings settings = bandit_settings("intervention_aware");
  settings.feedback.debias = debias;
  auto ranker = make_bandit(settings, world.features());
  TestContext context;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    const QueryDocs query = world.query_of(round);
    const RankedList list = ranker->rank(context.round, query, round);
    const Docs shown(list.docs.begin(), list.docs.begin() + kSmallCutoff);
    const Clicks clicks = position_biased(world, query, shown, kLooks, round);
    ranker->learn(context.round, {round, query, shown, clicks});
  }
  return ranker;
}

TEST(InterventionAwareTest, LearnsFromUsersWhoSeldomLookAtLowRanks) {
  const SmallWorld world(3, 20, 12, 4);
  EXPECT_GT(world.ndcg(*played(world, kLooks, 1500), 5), 0.9);
}

TEST(InterventionAwareTest, LearnsWhereUsersLook) {
  const SmallWorld world(3, 20, 12, 4);
  const auto ranker = played(world, {}, 1500);
  EXPECT_GT(world.ndcg(*ranker, 5), 0.9);
  StateReader reader(state_of(*ranker), "test");
  reader.skip_to("examined");
  const auto examined = reader.get<double>("examined");
  for (std::size_t rank = 0; rank < kLooks.size(); ++rank)
    EXPECT_NEAR(examined[rank] / 1500.0, kLooks[rank], 0.15) << rank;
}

TEST(InterventionAwareTest, CountsDocumentsByTheirNames) {
  // The same documents in another order are the same ones: the log has one query of them.
  const SmallWorld world(4, 1, 6, 3);
  const QueryDocs query = world.query(0);
  std::vector<float> turned;
  std::vector<std::int64_t> numbers;
  for (std::int32_t doc = 5; doc >= 0; --doc) {
    const auto features = query.features.doc(doc);
    turned.insert(turned.end(), features.begin(), features.end());
    numbers.push_back(query.number(doc));
  }
  const QueryDocs other{0, 0, {turned.data(), 6, 3}, numbers};
  const auto clicks_of = [&](const QueryDocs& second, const Docs& shown) {
    const auto ranker = make_bandit(bandit_settings("intervention_aware"), 3);
    TestContext context;
    ranker->learn(context.round, {1, query, Docs{0, 1, 2}, Clicks{1, 0, 0}});
    ranker->learn(context.round, {2, second, shown, Clicks{0, 1, 0}});
    StateReader reader(state_of(*ranker), "test");
    reader.skip_to("clicks");
    return reader.get<double>("clicks");
  };
  EXPECT_EQ(clicks_of(query, {3, 0, 2}), (Values{2.0, 0.0, 0.0, 0.0, 0.0, 0.0}));
  EXPECT_EQ(clicks_of(other, {2, 5, 3}), (Values{2.0, 0.0, 0.0, 0.0, 0.0, 0.0}));
}

TEST(InterventionAwareTest, MakesItsListsWithoutTheLog) {
  const SmallWorld world(3, 20, 12, 4);
  const auto ranker = played(world, kLooks, 30);
  StateWriter state;
  ranker->save_for_lists(state);
  EXPECT_LT(state.bytes().size(), 1000U);
  StateReader reader(state.bytes(), "test");
  const auto other = make_bandit(bandit_settings("intervention_aware"), 4);
  other->load_for_lists(reader);
  reader.require_end();
  ExecutionContext context;
  for (std::uint32_t round = 31; round < 40; ++round) {
    Ranking own;
    Ranking copied;
    const RankingTask task{world.query_of(round).features, kSmallCutoff, round};
    ranker->freeze()->rank(context, task, own);
    other->freeze()->rank(context, task, copied);
    EXPECT_EQ(own.list, copied.list) << round;
  }
}

}  // namespace
}  // namespace olrank
