// The propensities of lists are the frequencies with which they are drawn.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/online/online_ranker.h"
#include "models/ranker_factory.h"
#include "tests/models/small_world.h"
#include "tests/support/chi_square.h"

namespace olrank {
namespace {

constexpr std::int64_t kDocs = 5;
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
      const std::vector<std::int32_t> shown = {static_cast<std::int32_t>(round % kDocs),
                                               static_cast<std::int32_t>((round + 2) % kDocs),
                                               static_cast<std::int32_t>((round + 3) % kDocs)};
      ranker->learn(context_.round, {round, query, shown, world_.perfect_clicks(query.query, shown)});
    }
    return ranker;
  }

  SmallWorld world_{17, 4, kDocs, 3};
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
                    Case{"ucb", RankerKind::kPairRank, ListRule::kUcb},
                    Case{"ucb-ties", RankerKind::kPairRank, ListRule::kUcb, 0.0, false},
                    Case{"votes", RankerKind::kP2LinRank, ListRule::kCertain},
                    Case{"pdgd", RankerKind::kPdgd}, Case{"prpo", RankerKind::kPrpo},
                    Case{"intervention-aware", RankerKind::kInterventionAware},
                    Case{"pdgd-ties", RankerKind::kPdgd, ListRule::kCertain, 0.0, false},
                    Case{"epsilon", RankerKind::kRankNet, ListRule::kCertain, 0.3}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(PropensityOfDrawsTest, IsUnknownForPosteriorSamples) {
  const SmallWorld world(17, 4, kDocs, 3);
  TestContext context;
  for (const RankerKind kind : {RankerKind::kClickGp, RankerKind::kPairRank}) {
    RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kRecommended);
    settings.explore.list = ListRule::kSample;
    const auto ranker = make_ranker(settings, world.features(), TrialKeys::of(3, 1, "propensity"), kShown);
    EXPECT_TRUE(ranker->rank(context.round, world.query_of(1), 1).propensity.empty());
  }
}

}  // namespace
}  // namespace olrank
