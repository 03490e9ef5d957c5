#include "models/baselines/lambdarank_labels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.h"
#include "models/ranker_factory.h"
#include "tests/models/labelled_world.h"

namespace olrank {
namespace {

RankerSettings skyline_settings() {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kLambdaRankLabels, ProtocolName::kPaper);
  settings.name = "sky";
  settings.network.network = NetworkForm::kLinear;
  settings.trainer.learning_rate = 0.05;
  return settings;
}

/// Rounds with clicks that prefer the last document shown: a ranker that learned from them would get worse.
void play(OnlineRanker& ranker, const LabelledQueries& labels, std::uint32_t first, std::uint32_t last) {
  TestContext context;
  for (std::uint32_t round = first; round <= last; ++round) {
    const QueryDocs query = query_docs(labels, round % 15);
    const RankedList list = ranker.rank(context.round, query, round);
    const std::vector<std::int32_t> shown(list.docs.begin(), list.docs.begin() + 10);
    std::vector<std::uint8_t> clicks(10, 0);
    clicks.back() = 1;
    EXPECT_TRUE(ranker.learn(context.round, {round, query, shown, clicks}).pairs.empty());
  }
}

TEST(LambdaRankLabelsTest, FitsTheGradesOfAllQueriesAskedSoFar) {
  const LabelledWorld world(3, 30, 12, 5);
  const LabelledQueries labels = world.labels();
  const auto ranker =
      make_ranker(skyline_settings(), 5, TrialKeys::of(1, 1, "test"), 10, {.labels = &labels});
  EXPECT_LT(world.ndcg(*ranker, 5), 0.75);
  play(*ranker, labels, 1, 200);
  // Only queries 0 to 14 were asked, and they tell what relevance means.
  EXPECT_GT(world.ndcg(*ranker, 5), 0.95);
}

TEST(LambdaRankLabelsTest, TheFirstStepIsAdamsOnTheAskedQuery) {
  const LabelledWorld world(5, 4, 9, 4);
  const LabelledQueries labels = world.labels();
  RankerSettings settings = skyline_settings();
  settings.trainer.steps = 1;
  const auto ranker = make_ranker(settings, 4, TrialKeys::of(1, 1, "test"), 9, {.labels = &labels});
  TestContext context;
  const QueryDocs query = query_docs(labels, 1);
  const RankedList list = ranker->rank(context.round, query, 1);
  const std::vector<std::int32_t> shown(list.docs.begin(), list.docs.begin() + 1);
  const std::vector<std::uint8_t> clicks = {0};
  ranker->learn(context.round, {1, query, shown, clicks});
  std::vector<double> slopes(9);
  const std::vector<double> zeros(9, 0.0);
  Scratch scratch;
  list_loss({.loss = ListLoss::kLambdaRank}, zeros, labels.grades_of(1).of_doc, scratch, slopes);
  for (std::size_t k = 0; k < 4; ++k) {
    double gradient = 0.0;
    for (std::int32_t doc = 0; doc < 9; ++doc) gradient += slopes[doc] * query.features.doc(doc)[k];
    ASSERT_GT(std::abs(gradient), 1e-4);
    EXPECT_NEAR(theta_of(*ranker)[k], gradient > 0 ? -0.05 : 0.05, 1e-5);
  }
}

TEST(LambdaRankLabelsTest, TrainsANewModelInEachRoundFromTheFirstParameters) {
  const LabelledWorld world(4, 15, 12, 5);
  const LabelledQueries labels = world.labels();
  RankerSettings settings = skyline_settings();
  settings.trainer.steps = 3;
  settings.trainer.restart = Restart::kFirst;
  const auto ranker = make_ranker(settings, 5, TrialKeys::of(1, 1, "test"), 10, {.labels = &labels});
  play(*ranker, labels, 1, 2);
  // The first round asked query 1, the second query 2: three Adam steps on them from 0 follow from these
  // rounds alone.
  const auto batch_key = make_key({.seed = 1, .purpose = Purpose::kBatch, .fold = 1});
  std::vector<float> theta(5, 0.0F);
  std::vector<double> first(5, 0.0);
  std::vector<double> second(5, 0.0);
  Scratch scratch;
  for (std::uint32_t step = 0; step < 3; ++step) {
    RngStream draws(batch_key, 2, step);
    std::vector<double> gradient(5, 0.0);
    for (int drawn = 0; drawn < 2; ++drawn) {
      const std::int64_t query = 1 + draws.index_of(2);
      const QueryDocs docs = query_docs(labels, query);
      std::vector<double> scores(12);
      std::vector<double> slopes(12);
      for (std::int32_t doc = 0; doc < 12; ++doc) {
        for (std::size_t k = 0; k < 5; ++k) scores[doc] += double{theta[k]} * docs.features.doc(doc)[k];
      }
      list_loss({.loss = ListLoss::kLambdaRank}, scores, labels.grades_of(query).of_doc, scratch, slopes);
      for (std::int32_t doc = 0; doc < 12; ++doc) {
        for (std::size_t k = 0; k < 5; ++k) gradient[k] += 0.5 * slopes[doc] * docs.features.doc(doc)[k];
      }
    }
    for (std::size_t k = 0; k < 5; ++k) {
      first[k] = 0.9 * first[k] + 0.1 * gradient[k];
      second[k] = 0.999 * second[k] + 0.001 * gradient[k] * gradient[k];
      const double mean = first[k] / (1.0 - std::pow(0.9, step + 1));
      const double square = second[k] / (1.0 - std::pow(0.999, step + 1));
      theta[k] = static_cast<float>(double{theta[k]} - 0.05 * mean / (std::sqrt(square) + 1e-8));
    }
  }
  for (std::size_t k = 0; k < 5; ++k) EXPECT_NEAR(theta_of(*ranker)[k], theta[k], 1e-5) << k;
  settings.trainer.restart = Restart::kFresh;
  EXPECT_THROW(check_ranker(settings, 10), InvalidArgument);
}

}  // namespace
}  // namespace olrank
