// What every ranker without a posterior owes to the trial loop.
#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"
#include "tests/models/small_world.h"
#include "tests/support/message_of.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

using Docs = std::vector<std::int32_t>;
using Clicks = std::vector<std::uint8_t>;

constexpr std::size_t kCutoff = 10;

class BanditRankersTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<OnlineRanker> make(std::int64_t features, std::vector<float> first_theta = {}) const {
    return make_bandit(bandit_settings(GetParam()), features, std::move(first_theta));
  }
  bool team_draft() const { return GetParam().ends_with("team_draft"); }
};

/// One round as a trial plays it; what was shown.
Docs play(OnlineRanker& ranker, TestContext& context, const SmallWorld& world, std::uint32_t round) {
  const QueryDocs query = world.query_of(round);
  const RankedList list = ranker.rank(context.round, query, round);
  const auto shown = list.docs.first(std::min(kCutoff, list.docs.size()));
  const Docs kept(shown.begin(), shown.end());
  const Clicks clicks = world.perfect_clicks(query.query, kept);
  ranker.learn(context.round, {round, query, kept, clicks});
  return kept;
}

TEST_P(BanditRankersTest, ListsEveryDocumentOnce) {
  for (const std::int64_t docs : {1, 2, 3, 50}) {
    const SmallWorld world(3, 5, docs, 4);
    const auto ranker = make(4);
    TestContext context;
    for (std::uint32_t round = 1; round <= 30; ++round) {
      const RankedList list = ranker->rank(context.round, world.query_of(round), round);
      EXPECT_FALSE(list.certainty.has_value());
      Docs sorted(list.docs.begin(), list.docs.end());
      std::sort(sorted.begin(), sorted.end());
      Docs all(static_cast<std::size_t>(docs));
      std::iota(all.begin(), all.end(), 0);
      ASSERT_EQ(sorted, all);
      play(*ranker, context, world, round);
    }
    for (const float value : theta_of(*ranker)) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST_P(BanditRankersTest, HandlesTies) {
  // All documents of a query are the same one: whatever is clicked teaches nothing that scores could show.
  const std::vector<float> values(12 * 3, 0.5F);
  const QueryDocs query{0, 0, {values.data(), 12, 3}};
  const auto ranker = make(3);
  TestContext context;
  for (std::uint32_t round = 1; round <= 20; ++round) {
    const RankedList list = ranker->rank(context.round, query, round);
    Docs shown(list.docs.begin(), list.docs.end());
    Clicks clicks(shown.size(), 0);
    clicks[round % 12] = 1;
    ranker->learn(context.round, {round, query, shown, clicks});
    std::sort(shown.begin(), shown.end());
    ASSERT_EQ(std::unique(shown.begin(), shown.end()), shown.end());
  }
  for (const float value : theta_of(*ranker)) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(BanditRankersTest, AnEmptyQueryHasAnEmptyList) {
  const auto ranker = make(3);
  TestContext context;
  const QueryDocs query{0, 0, {nullptr, 0, 3}};
  EXPECT_TRUE(ranker->rank(context.round, query, 1).docs.empty());
  ranker->learn(context.round, {1, query, {}, {}});
}

TEST_P(BanditRankersTest, ResumesBitIdentically) {
  const SmallWorld world(4, 7, 15, 5);
  const auto straight = make(5);
  const auto first = make(5);
  TestContext context;
  for (std::uint32_t round = 1; round <= 40; ++round) {
    play(*straight, context, world, round);
    play(*first, context, world, round);
  }
  const std::string saved = state_of(*first);
  const auto second = make(5);
  TestContext other_context;
  play(*second, other_context, world, 1);  // what it knew before is gone
  load_state(*second, saved);
  EXPECT_EQ(state_of(*second), saved);
  for (std::uint32_t round = 41; round <= 80; ++round) {
    ASSERT_EQ(play(*second, other_context, world, round), play(*straight, context, world, round));
  }
  EXPECT_EQ(state_of(*second), state_of(*straight));
}

TEST_P(BanditRankersTest, LearnsTheSameWithoutRankingFirst) {
  const SmallWorld world(5, 7, 15, 5);
  const auto ranking = make(5);
  const auto reading = make(5);
  TestContext context;
  for (std::uint32_t round = 1; round <= 60; ++round) {
    const Docs shown = play(*ranking, context, world, round);
    const QueryDocs query = world.query_of(round);
    const Clicks clicks = world.perfect_clicks(query.query, shown);
    reading->learn(context.round, {round, query, shown, clicks});
    ASSERT_EQ(state_of(*reading), state_of(*ranking)) << round;
  }
  EXPECT_NE(theta_of(*ranking), std::vector<float>(5, 0.0F));
}

TEST_P(BanditRankersTest, RankingInBetweenDoesNotChangeLearning) {
  // A server ranks the next query before the clicks of the one before have come.
  const SmallWorld world(6, 7, 15, 5);
  const auto in_turn = make(5);
  const auto overlapping = make(5);
  TestContext context;
  const Docs shown = play(*in_turn, context, world, 1);
  const Clicks clicks = world.perfect_clicks(world.query_of(1).query, shown);
  overlapping->rank(context.round, world.query_of(1), 1);
  overlapping->rank(context.round, world.query_of(2), 2);
  overlapping->learn(context.round, {1, world.query_of(1), shown, clicks});
  EXPECT_EQ(state_of(*overlapping), state_of(*in_turn));
}

TEST_P(BanditRankersTest, LearnsFromOtherListsUnlessTeamsAreNeeded) {
  const SmallWorld world(7, 7, 15, 5);
  const auto ranker = make(5);
  TestContext context;
  for (std::uint32_t round = 1; round <= 30; ++round) {
    const QueryDocs query = world.query_of(round);
    Docs shown(kCutoff);
    std::iota(shown.rbegin(), shown.rend(), 3);
    const Clicks clicks = world.perfect_clicks(query.query, shown);
    const Feedback feedback{round, query, shown, clicks};
    if (!team_draft()) {
      ranker->learn(context.round, feedback);
      continue;
    }
    const std::string before = state_of(*ranker);
    const std::string message =
        message_of<InvalidArgument>([&] { ranker->learn(context.round, feedback); });
    EXPECT_NE(message.find("cannot learn from recorded lists with team-draft interleaving"),
              std::string::npos);
    EXPECT_NE(message.find("set interleaving = \"probabilistic\""), std::string::npos);
    EXPECT_EQ(state_of(*ranker), before);
  }
  EXPECT_EQ(theta_of(*ranker) == std::vector<float>(5, 0.0F), team_draft());
}

TEST_P(BanditRankersTest, DescribesTheBasisOfTheList) {
  const SmallWorld world(8, 7, 15, 5);
  const auto ranker = make(5);
  TestContext context;
  for (std::uint32_t round = 1; round <= 10; ++round) play(*ranker, context, world, round);
  const QueryDocs query = world.query_of(11);
  ranker->rank(context.round, query, 11);
  RoundDetail detail;
  ranker->describe(query, false, detail);
  std::vector<float> scores(15);
  ranker->score(context.execution, query.features, scores);
  EXPECT_EQ(detail.scores, std::vector<double>(scores.begin(), scores.end()));
  EXPECT_TRUE(detail.theta.empty());
  ranker->describe(query, true, detail);
  EXPECT_EQ(detail.theta, std::vector<std::vector<float>>{theta_of(*ranker)});
  EXPECT_TRUE(detail.width_sq.empty());
  EXPECT_TRUE(detail.certain.empty());
  EXPECT_TRUE(ranker->figures(context.execution).empty());
  EXPECT_EQ(ranker->parameters(), 5);
}

TEST_P(BanditRankersTest, ClicksWithoutContrastChangeNothing) {
  const SmallWorld world(9, 3, 15, 5);
  const auto ranker = make(5);
  TestContext context;
  const RankedList list = ranker->rank(context.round, world.query(0), 1);
  const Docs shown(list.docs.begin(), list.docs.begin() + 10);
  const LearnReport report = ranker->learn(context.round, {1, world.query(0), shown, Clicks(10, 0)});
  EXPECT_TRUE(report.pairs.empty());
  EXPECT_TRUE(report.steps.empty());
  EXPECT_EQ(theta_of(*ranker), std::vector<float>(5, 0.0F));
}

TEST_P(BanditRankersTest, MeasuresItsStages) {
  const SmallWorld world(10, 3, 15, 5);
  const auto ranker = make(5);
  TestContext context;
  for (std::uint32_t round = 1; round <= 10; ++round) play(*ranker, context, world, round);
  std::vector<std::string> stages;
  for (const StageClock::Stage& stage : context.clock.stages()) stages.push_back(stage.name);
  EXPECT_EQ(stages, (std::vector<std::string>{"score", "rank", "train"}));
}

TEST_P(BanditRankersTest, RefusesInvalidFeedback) {
  const SmallWorld world(11, 3, 4, 5);
  const auto ranker = make(5);
  TestContext context;
  const auto learn = [&](const Docs& shown, const Clicks& clicks) {
    ranker->learn(context.round, {1, world.query(0), shown, clicks});
  };
  EXPECT_THROW(learn({0, 1, 2}, {1, 0}), InvalidArgument);
  EXPECT_THROW(learn({0, 4}, {1, 0}), InvalidArgument);
  EXPECT_THROW(learn({-1, 1}, {1, 0}), InvalidArgument);
  EXPECT_THROW(learn({1, 2, 1}, {1, 0, 0}), InvalidArgument);
}

TEST_P(BanditRankersTest, ReportsScoresThatAreNotFinite) {
  const SmallWorld world(12, 3, 4, 5);
  const auto ranker = make(5, std::vector<float>(5, std::numeric_limits<float>::max()));
  TestContext context;
  EXPECT_THROW(ranker->rank(context.round, world.query(0), 1), NumericError);
}

TEST_P(BanditRankersTest, LearnsASeparableWorldFromAPerfectUser) {
  const SmallWorld world(13, 50, 15, 6);
  const auto ranker = make(6);
  TestContext context;
  const double untrained = world.ndcg(*ranker, kCutoff);
  for (std::uint32_t round = 1; round <= 2000; ++round) play(*ranker, context, world, round);
  const double trained = world.ndcg(*ranker, kCutoff);
  RecordProperty("untrained", std::to_string(untrained));
  RecordProperty("trained", std::to_string(trained));
  EXPECT_LT(untrained, 0.7);
  EXPECT_GT(trained, 0.85) << "from " << untrained;
}

INSTANTIATE_TEST_SUITE_P(All, BanditRankersTest, testing::ValuesIn(bandit_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace olrank
