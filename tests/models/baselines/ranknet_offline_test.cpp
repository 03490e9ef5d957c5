#include "models/baselines/ranknet.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "models/linear/linear_belief.h"
#include "models/ranker_factory.h"
#include "tests/models/labelled_world.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

RankerSettings offline_settings(NetworkForm network) {
  RankerSettings settings =
      RankerSettings::defaults(RankerKind::kRankNetOffline, ProtocolName::kRecommended);
  settings.name = "offline";
  settings.network.network = network;
  settings.network.width = 8;
  settings.trainer.batch = 4;
  return settings;
}

TEST(RankNetOfflineTest, OneStepMatchesAdamOnTheMeanLossOfAllPairs) {
  const LabelledWorld world(5, 3, 7, 4);
  RankerSettings settings = offline_settings(NetworkForm::kLinear);
  settings.trainer.epochs = 1;
  settings.trainer.batch = 1'000'000;
  const std::vector<float> first = {0.5F, -1.0F, 2.0F, 0.25F};
  const std::vector<float> moved = train_offline(LinearModel(4), world.labels(), settings,
                                                 make_key({.purpose = Purpose::kBatch}), first);
  std::vector<double> gradient(4, 0.0);
  for (std::int64_t query = 0; query < 3; ++query) {
    const FeatureMatrix docs = world.query(query).features;
    double pairs = 0.0;
    std::vector<double> of_query(4, 0.0);
    for (std::int32_t winner = 0; winner < 7; ++winner) {
      for (std::int32_t loser = 0; loser < 7; ++loser) {
        if (world.grade(query, winner) <= world.grade(query, loser)) continue;
        pairs += 1.0;
        double z = 0.0;
        for (std::size_t k = 0; k < 4; ++k) z += first[k] * (docs.doc(winner)[k] - docs.doc(loser)[k]);
        for (std::size_t k = 0; k < 4; ++k) {
          of_query[k] -= (docs.doc(winner)[k] - docs.doc(loser)[k]) / (1.0 + std::exp(z));
        }
      }
    }
    for (std::size_t k = 0; k < 4 && pairs > 0.0; ++k) gradient[k] += of_query[k] / pairs;
  }
  // The first step of Adam is the learning rate against the sign, but for ε.
  for (std::size_t k = 0; k < 4; ++k) {
    ASSERT_GT(std::fabs(gradient[k]), 1e-3);
    EXPECT_NEAR(moved[k], first[k] - settings.trainer.learning_rate * (gradient[k] > 0 ? 1.0 : -1.0), 1e-6);
  }
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
    const RankedList list = ranker->rank(context.round, query, 1);
    const std::vector<std::int32_t> shown(list.docs.begin(), list.docs.begin() + 2);
    const std::vector<std::uint8_t> clicks = {0, 1};
    EXPECT_TRUE(ranker->learn(context.round, {1, query, shown, clicks}).pairs.empty());
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

}  // namespace
}  // namespace olrank
