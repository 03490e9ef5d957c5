// Rankers of every kind with a module whose scores depend on the other documents of a list.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/ranker_memory.h"
#include "tests/models/neural/recorded_rounds.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

constexpr std::uint32_t kListRounds = 16;

const SmallWorld& world_of_lists() {
  static const SmallWorld made(91, 6, 14, 4);
  return made;
}

RankerSettings list_settings(const std::string& name) {
  const auto& bandits = bandit_names();
  const bool bandit = std::find(bandits.begin(), bandits.end(), name) != bandits.end();
  RankerSettings settings = bandit ? bandit_settings(name) : neural_settings(name);
  settings.network.network = NetworkForm::kModule;
  settings.network.module = "attention";
  settings.network.width = 6;
  settings.trainer.steps = 2;
  settings.posterior.members = 2;
  if (settings.trainer.retrain == Retrain::kGrowth) settings.trainer.replay = 24;
  return settings;
}

struct ListCourse {
  std::vector<RecordedRound> rounds;
  std::string state;
};

ListCourse play_lists(OnlineRanker& ranker, std::uint32_t first, std::uint32_t last, int threads = 1) {
  ExecutionContext execution(threads);
  StageClock clock;
  RoundContext context{execution, clock};
  ListCourse course;
  for (std::uint32_t round = first; round <= last; ++round)
    course.rounds.push_back(play_round(ranker, context, world_of_lists(), round));
  course.state = state_of(ranker);
  return course;
}

class ListRankersTest : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<OnlineRanker> make() {
    return make_neural(list_settings(GetParam()), world_of_lists().features());
  }
};

TEST_P(ListRankersTest, ResumesAndRunsOnThreadsWithTheSameBits) {
  const auto whole = make();
  EXPECT_TRUE(whole->learns_from_unshown());
  const std::vector<float> first = flat_theta(*whole);
  const ListCourse expected = play_lists(*whole, 1, kListRounds);
  EXPECT_NE(flat_theta(*whole), first);
  for (const int threads : {2, 4}) {
    const auto more = make();
    const ListCourse course = play_lists(*more, 1, kListRounds, threads);
    EXPECT_EQ(course.rounds, expected.rounds);
    EXPECT_TRUE(course.state == expected.state) << threads;
  }
  const auto earlier = make();
  const std::string state = play_lists(*earlier, 1, 9).state;
  const auto later = make();
  play_lists(*later, 1, 3);  // what loading replaces
  load_state(*later, state);
  const ListCourse rest = play_lists(*later, 10, kListRounds);
  EXPECT_TRUE(std::equal(rest.rounds.begin(), rest.rounds.end(), expected.rounds.begin() + 9));
  EXPECT_TRUE(rest.state == expected.state);
}

/// Evaluations score all queries in one call.
TEST_P(ListRankersTest, ScoresOfAllQueriesAreThoseOfEach) {
  const auto ranker = make();
  play_lists(*ranker, 1, 6);
  const SmallWorld& world = world_of_lists();
  const std::int64_t docs = world.query(0).docs();
  std::vector<std::int64_t> ends;
  for (std::int64_t query = 1; query <= world.queries(); ++query) ends.push_back(query * docs);
  FeatureMatrix all = world.query(0).features;
  all.docs *= world.queries();
  all.list_ends = ends;
  ExecutionContext execution(2);
  std::vector<float> together(all.docs);
  ranker->score(execution, all, together);
  for (std::int64_t query = 0; query < world.queries(); ++query) {
    std::vector<float> alone(docs);
    ranker->score(execution, world.query(query).features, alone);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + query * docs)) << query;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ListRankersTest,
                         testing::Values("dual", "diagonal", "lambdarank", "ensemble", "reference_ensemble",
                                         "growth", "growth_lambdarank", "growth_ensemble", "pdgd",
                                         "dbgd_team_draft", "mgd_probabilistic", "ranknet_greedy"),
                         [](const auto& test) { return test.param; });

/// Lists are kept whole, and pass one by one: what is held grows with their features.
TEST(ListRankersPlanTest, CountsWholeLists) {
  RankerSettings settings = list_settings("none");
  RankerLoad load = {
      .features = 100, .train_docs = 1'000'000, .rounds = 1'000, .cutoff = 10, .most_docs = 40};
  const auto bytes = [&] { return static_cast<double>(memory_of_ranker(settings, load).bytes); };
  const double before = bytes();
  load.most_docs = 80;
  // 1,000 lists with 40 documents more of 100 features and their scores and weights.
  const double more = bytes() - before;
  EXPECT_GE(more, 1'000.0 * 40 * 100 * 4);
  EXPECT_LE(more, 1'000.0 * 40 * 110 * 4 + 1e6);
}

}  // namespace
}  // namespace olrank
