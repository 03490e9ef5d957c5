#include "models/baselines/deployed_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/metrics/list_metrics.h"
#include "models/baselines/pdgd.h"
#include "models/ranker_factory.h"
#include "tests/models/small_world.h"

namespace olrank {
namespace {

using Docs = std::vector<std::int32_t>;
using Clicks = std::vector<std::uint8_t>;

const TrialKeys kKeys = TrialKeys::of(1, 1, "test");

RankerSettings settings_of(std::int64_t refresh_rounds) {
  RankerSettings settings = bandit_settings("prpo");
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

TEST(PrpoTest, FollowsTheClippedGradientOfClicksAboveTheirMean) {
  const SmallWorld world(1, 3, 9, 4);
  const std::vector<float> theta = {0.5F, -1.0F, 2.0F, 0.25F};
  const auto ranker = make_bandit(settings_of(10), 4, theta);
  TestContext context;
  const Docs shown = {8, 1, 3};
  // Clicks from each rank downwards: (2, 1, 1) and then (1, 1, 0), whose means were the former.
  const std::vector<Clicks> clicks = {{1, 0, 1}, {0, 1, 0}};
  const std::vector<std::vector<double>> advantages = {{2.0, 1.0, 1.0}, {-1.0, 0.0, -1.0}};
  for (std::uint32_t round = 1; round <= 2; ++round) {
    const QueryDocs query = world.query(round);
    const std::vector<float> before = theta_of(*ranker);
    ranker->learn(context.round, {round, query, shown, clicks[round - 1]});
    std::vector<double> weights(9);
    Scratch scratch;
    proximal_weights({scores_of(before, query), scores_of(theta, query), shown, advantages[round - 1], 1.2},
                     scratch, weights);
    const std::vector<float> moved = theta_of(*ranker);
    for (std::size_t k = 0; k < 4; ++k) {
      double gradient = 0.0;
      for (std::int64_t doc = 0; doc < 9; ++doc)
        gradient += weights[doc] * double{query.features.doc(doc)[k]};
      // The ranker's scores are rounded to float: relative 6e-8 of each of a few terms of size 2.
      EXPECT_NEAR(moved[k], double{before[k]} + 0.3 * gradient, 2e-6) << round;
    }
  }
}

TEST(PrpoTest, ShowsTheSafePolicyUntilItIsRefreshed) {
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

TEST(PrpoTest, HasSettingsOfItsOwn) {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kPrpo, ProtocolName::kPaper);
  settings.name = "prpo";
  EXPECT_NO_THROW(check_ranker(settings, 10));
  EXPECT_FALSE(is_left_out_of_recipe(settings, "exposure_clip"));
  settings.kind = RankerKind::kPdgd;
  EXPECT_TRUE(is_left_out_of_recipe(settings, "exposure_clip"));
  EXPECT_TRUE(is_left_out_of_recipe(settings, "refresh_rounds"));
}

}  // namespace
}  // namespace olrank
