#include "models/baselines/intervention_aware.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/baselines/pdgd.h"
#include "models/ranker_factory.h"
#include "tests/models/small_world.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

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

TEST(InterventionAwareTest, HasSettingsOfItsOwn) {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kInterventionAware, ProtocolName::kPaper);
  settings.name = "intervention-aware";
  settings.feedback.debias = {1.0, 0.5};
  EXPECT_NO_THROW(check_ranker(settings, 10));
  EXPECT_FALSE(is_left_out_of_recipe(settings, "refresh_rounds"));
  EXPECT_FALSE(is_left_out_of_recipe(settings, "debias"));
  EXPECT_TRUE(is_left_out_of_recipe(settings, "exposure_clip"));
}

}  // namespace
}  // namespace olrank
