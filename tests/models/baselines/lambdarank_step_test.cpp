#include "models/baselines/lambdarank_labels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/linear/linear_belief.h"
#include "models/ranker_factory.h"
#include "tests/models/labelled_world.h"

namespace olrank {
namespace {

RankerSettings linear_settings() {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kLambdaRankStep, ProtocolName::kPaper);
  settings.name = "sky";
  settings.network.network = NetworkForm::kLinear;
  settings.trainer.learning_rate = 0.5;
  return settings;
}

TEST(LambdaRankStepTest, LearnsFromGradesNotClicks) {
  const LabelledWorld world(3, 30, 12, 5);
  const LabelledQueries labels = world.labels();
  const auto ranker =
      make_ranker(linear_settings(), 5, TrialKeys::of(1, 1, "test"), 10, {.labels = &labels});
  TestContext context;
  const double before = world.ndcg(*ranker, 5);
  for (std::uint32_t round = 1; round <= 300; ++round) {
    const QueryDocs query = query_docs(labels, round % labels.queries());
    const RankedList list = ranker->rank(context.round, query, round);
    const std::vector<std::int32_t> shown(list.docs.begin(), list.docs.begin() + 10);
    // Clicks that prefer the last document: a ranker that learned from them would get worse.
    std::vector<std::uint8_t> clicks(10, 0);
    clicks.back() = 1;
    const LearnReport report = ranker->learn(context.round, {round, query, shown, clicks});
    EXPECT_TRUE(report.pairs.empty());
    EXPECT_EQ(report.steps.size(), 1U);
  }
  EXPECT_LT(before, 0.75);
  EXPECT_GT(world.ndcg(*ranker, 5), 0.95);
}

TEST(LambdaRankStepTest, RefusesAQueryWithoutGrades) {
  const LabelledWorld world(3, 2, 12, 5);
  const LabelledQueries labels = world.labels();
  const auto ranker =
      make_ranker(linear_settings(), 5, TrialKeys::of(1, 1, "test"), 10, {.labels = &labels});
  TestContext context;
  QueryDocs query = query_docs(labels, 1);
  query.query = 2;
  const std::vector<std::int32_t> shown = {0};
  const std::vector<std::uint8_t> clicks = {1};
  EXPECT_THROW(ranker->learn(context.round, {1, query, shown, clicks}), InvalidArgument);
}

TEST(LambdaRankStepTest, OnlyKindsThatLearnFromLabelsRequireThem) {
  EXPECT_TRUE(row_of(RankerKind::kLambdaRankStep).needs_labels);
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
