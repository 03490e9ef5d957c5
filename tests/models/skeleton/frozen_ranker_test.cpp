// A frozen ranker makes the lists that its ranker would have made, whatever that one learns afterwards.
#include "core/online/online_ranker.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "models/ranker_factory.h"
#include "tests/models/small_world.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

constexpr std::int64_t kListCutoff = 8;

const SmallWorld& world() {
  static const SmallWorld made(17, 12, 20, 5);
  return made;
}

RankerSettings settings_of(const std::string& name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  RankerKind kind = RankerKind::kOlRankNet;
  if (has("pairrank")) kind = RankerKind::kPairRank;
  if (has("p2lin")) kind = RankerKind::kP2LinRank;
  if (has("p2neur")) kind = RankerKind::kP2NeurRank;
  if (has("lambda")) kind = RankerKind::kOlLambdaRank;
  if (has("pdgd")) kind = RankerKind::kPdgd;
  if (has("epsilon")) kind = RankerKind::kRankNet;
  RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kRecommended);
  settings.name = name;
  settings.network.width = 6;
  settings.trainer.steps = std::min<std::int64_t>(settings.trainer.steps, 5);
  if (has("primal")) settings.posterior.form = CovarianceForm::kPrimal;
  if (has("dual")) settings.posterior.form = CovarianceForm::kDual;
  if (has("diagonal")) settings.posterior.covariance = Covariance::kDiagonal;
  if (has("of_inverse")) settings.posterior.covariance = Covariance::kDiagonalOfInverse;
  if (has("none")) settings.posterior.covariance = Covariance::kNone;
  if (has("theory")) settings.explore.alpha_schedule = AlphaSchedule::kTheory;
  if (has("blocks")) settings.explore.list = ListRule::kBlocks;
  if (has("blocks_certain")) settings.explore.list = ListRule::kBlocksCertain;
  if (has("greedy")) settings.explore.list = ListRule::kGreedy;
  if (has("inducing")) {
    settings.posterior.covariance = Covariance::kInducing;
    settings.posterior.budget = 40;
  }
  if (has("refine")) settings.explore.refine = true;
  if (has("epsilon")) {
    settings.bandit.exploration = SimpleExploration::kEpsilon;
    settings.bandit.epsilon = 0.3;
  }
  return settings;
}

std::unique_ptr<OnlineRanker> make(const std::string& name) {
  return make_ranker(settings_of(name), world().features(), TrialKeys::of(3, 1, "frozen"), kListCutoff);
}

/// Rounds `first` to `last`, whose lists are by document, so that ranking leaves no trace.
void teach(OnlineRanker& ranker, std::uint32_t first, std::uint32_t last) {
  TestContext context;
  for (std::uint32_t round = first; round <= last; ++round) {
    const QueryDocs query = world().query_of(round);
    std::vector<std::int32_t> shown;
    for (std::int32_t rank = 0; rank < kListCutoff; ++rank)
      shown.push_back(static_cast<std::int32_t>((rank * 7 + round) % 20));
    ranker.learn(context.round, {round, query, shown, world().perfect_clicks(query.query, shown)});
  }
}

struct List {
  std::vector<std::int32_t> docs;
  std::vector<float> scores;
  std::int64_t certain_pairs = -1;
  std::vector<double> propensity;  // of the shown ranks
  friend bool operator==(const List&, const List&) = default;
};

std::vector<double> shown_part(std::span<const double> propensity) {
  const auto shown = propensity.first(std::min<std::size_t>(propensity.size(), kListCutoff));
  return {shown.begin(), shown.end()};
}

List of_ranker(OnlineRanker& ranker, std::uint32_t round) {
  TestContext context;
  const QueryDocs query = world().query_of(round);
  const RankedList list = ranker.rank(context.round, query, round);
  return {{list.docs.begin(), list.docs.end()},
          scores_of(ranker, query.features),
          list.certainty ? list.certainty->certain_pairs : -1,
          shown_part(list.propensity)};
}

List of_frozen(const FrozenRanker& frozen, std::uint32_t round, bool explore = true) {
  ExecutionContext context;
  Ranking ranking;
  frozen.rank(context, {world().query_of(round).features, kListCutoff, round, explore}, ranking);
  return {ranking.list, ranking.scores, ranking.certainty ? ranking.certainty->certain_pairs : -1,
          shown_part(ranking.propensity)};
}

class FrozenRankerTest : public testing::TestWithParam<std::string> {};

TEST_P(FrozenRankerTest, MakesTheListsOfItsRanker) {
  const auto ranker = make(GetParam());
  for (std::uint32_t round = 1; round <= 30; ++round) {
    teach(*ranker, round, round);
    const auto frozen = ranker->freeze();
    ASSERT_NE(frozen, nullptr);
    EXPECT_EQ(of_frozen(*frozen, round + 1), of_ranker(*ranker, round + 1)) << "round " << round;
    EXPECT_EQ(theta_of(*ranker), frozen->model().tensors.front().values);
  }
}

TEST_P(FrozenRankerTest, DoesNotChangeWhileTheRankerLearns) {
  const auto ranker = make(GetParam());
  const auto alone = make(GetParam());
  std::vector<std::shared_ptr<const FrozenRanker>> frozen;
  std::vector<List> lists;
  for (std::uint32_t round = 1; round <= 150; ++round) {
    teach(*ranker, round, round);
    teach(*alone, round, round);
    if (round % 10 != 0) continue;
    frozen.push_back(ranker->freeze());
    lists.push_back(of_frozen(*frozen.back(), round));
  }
  for (std::size_t i = 0; i < frozen.size(); ++i)
    EXPECT_EQ(of_frozen(*frozen[i], static_cast<std::uint32_t>(10 * (i + 1))), lists[i]);
  EXPECT_NE(lists.front(), lists.back());
  // Nor does freezing leave a trace in the ranker.
  EXPECT_TRUE(state_of(*ranker) == state_of(*alone));
}

TEST_P(FrozenRankerTest, RanksOnManyThreadsWhileTheRankerLearns) {
  const auto ranker = make(GetParam());
  teach(*ranker, 1, 20);
  const auto frozen = ranker->freeze();
  const List expected = of_frozen(*frozen, 5);
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&] {
      for (int time = 0; time < 30; ++time) EXPECT_EQ(of_frozen(*frozen, 5), expected);
    });
  }
  teach(*ranker, 21, 60);
  for (std::thread& reader : readers) reader.join();
}

TEST_P(FrozenRankerTest, RanksByScoreWithoutExploration) {
  const auto ranker = make(GetParam());
  teach(*ranker, 1, 10);
  const List list = of_frozen(*ranker->freeze(), 4, false);
  for (std::size_t rank = 1; rank < list.docs.size(); ++rank) {
    EXPECT_GE(list.scores[list.docs[rank - 1]], list.scores[list.docs[rank]]);
  }
  EXPECT_EQ(list.propensity, std::vector<double>(kListCutoff, 1.0));
}

INSTANTIATE_TEST_SUITE_P(Kinds, FrozenRankerTest,
                         testing::Values("pairrank", "pairrank_blocks_certain", "pairrank_greedy",
                                         "pairrank_diagonal_theory", "p2lin", "p2neur", "net_dual",
                                         "net_primal_theory", "net_auto_blocks_refine", "net_diagonal",
                                         "net_of_inverse", "net_none", "lambda", "pdgd", "epsilon",
                                         "lambda_inducing"),
                         kOwnName);

TEST(FrozenRanker, IsNullWhenListsBelongToTheirRound) {
  const auto ranker = make_ranker(RankerSettings::defaults(RankerKind::kDbgd, ProtocolName::kRecommended),
                                  5, TrialKeys{}, kListCutoff);
  EXPECT_EQ(ranker->freeze(), nullptr);
}

// Documents with numbers of their own come back in another order within the round: repetitions fold.
TEST(QueryDocs, FoldsPairsByDocumentNumber) {
  for (const std::string name : {"pairrank", "net_dual"}) {
    const auto in_order = make(name);
    const auto turned = make(name);
    TestContext context;
    const QueryDocs query = world().query(0);
    const std::vector<float> two(query.features.values, query.features.values + 10);
    std::vector<float> swapped(two.begin() + 5, two.end());
    swapped.insert(swapped.end(), two.begin(), two.begin() + 5);
    const std::vector<std::int64_t> numbers = {40, 41};
    const std::vector<std::int64_t> other_way = {41, 40};
    const std::vector<std::int32_t> shown = {0, 1};
    for (std::uint32_t round = 1; round <= 4; ++round) {
      const bool turn = round % 2 == 0;
      const std::vector<std::uint8_t> clicks = {1, 0};
      in_order->learn(context.round, {round, {round, 0, {two.data(), 2, 5}, numbers}, shown, clicks});
      const std::vector<std::uint8_t> mirrored = {0, 1};
      turned->learn(context.round,
                    {round,
                     {round, 0, {turn ? swapped.data() : two.data(), 2, 5}, turn ? other_way : numbers},
                     shown,
                     turn ? mirrored : clicks});
    }
    const auto theta = theta_of(*in_order);
    const auto other = theta_of(*turned);
    for (std::size_t k = 0; k < theta.size(); ++k) EXPECT_NEAR(theta[k], other[k], 1e-6) << name;
    EXPECT_EQ(state_of(*in_order).size(), state_of(*turned).size())
        << name << ": a repetition became another pair";
  }
}

TEST(RankerStart, StartsFromTheParametersOfAModel) {
  RankerSettings settings = settings_of("net_dual");
  const auto taught = make_ranker(settings, 5, TrialKeys::of(3, 1, "a"), kListCutoff);
  teach(*taught, 1, 20);
  const std::vector<std::vector<float>> thetas = {flat_theta(*taught)};
  const auto started =
      make_ranker(settings, 5, TrialKeys::of(9, 1, "b"), kListCutoff, {.first_thetas = thetas});
  const FeatureMatrix docs = world().query(2).features;
  EXPECT_EQ(scores_of(*taught, docs), scores_of(*started, docs));

  EXPECT_THROW(make_ranker(settings, 6, TrialKeys{}, kListCutoff, {.first_thetas = thetas}),
               InvalidArgument);
  EXPECT_THROW(make_ranker(settings_of("pairrank"), 5, TrialKeys{}, kListCutoff, {.first_thetas = thetas}),
               InvalidArgument);
}

}  // namespace
}  // namespace olrank
