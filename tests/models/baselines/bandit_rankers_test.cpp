#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/fair/exposure.h"
#include "models/baselines/baselines.h"
#include "models/ranker_factory.h"
#include "tests/models/small_world.h"
#include "tests/support/message_of.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

// These tests check what every ranker without a posterior owes to the trial loop, beyond EveryRankerTest.

using Docs = ShownDocs;
using Clicks = std::vector<std::uint8_t>;

constexpr std::size_t kCutoff = 10;

class BanditRankersTest : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<OnlineRanker> make(std::int64_t features, std::vector<float> first_theta = {}) const {
    return make_bandit(bandit_settings(GetParam()), features, std::move(first_theta));
  }
  bool team_draft() const { return GetParam().ends_with("team_draft"); }

  TestContext context_;
};

TEST_P(BanditRankersTest, AnEmptyQueryHasAnEmptyList) {
  const auto ranker = make(3);
  const QueryDocs query{0, 0, {nullptr, 0, 3}};
  EXPECT_TRUE(ranker->rank(context_.round, query, 1).docs.empty());
  ranker->learn(context_.round, {1, query, {}, {}});
}

TEST_P(BanditRankersTest, LearnsFromOtherListsUnlessTeamsAreNeeded) {
  const SmallWorld world(7, 7, 15, 5);
  const auto ranker = make(5);
  for (std::uint32_t round = 1; round <= 30; ++round) {
    const QueryDocs query = world.query_of(round);
    Docs shown(kCutoff);
    std::iota(shown.rbegin(), shown.rend(), 3);
    const Clicks clicks = world.perfect_clicks(query.query, shown);
    const Feedback feedback{round, query, shown, clicks};
    if (!team_draft()) {
      ranker->learn(context_.round, feedback);
      continue;
    }
    const std::string before = state_of(*ranker);
    const std::string message =
        message_of<InvalidArgument>([&] { ranker->learn(context_.round, feedback); });
    EXPECT_TRUE(contains(message, "cannot learn from recorded lists with team-draft interleaving"));
    EXPECT_TRUE(contains(message, "set interleaving = \"probabilistic\""));
    EXPECT_EQ(state_of(*ranker), before);
  }
  EXPECT_EQ(theta_of(*ranker) == std::vector<float>(5, 0.0F), team_draft());
}

TEST_P(BanditRankersTest, DescribesTheBasisOfTheList) {
  const SmallWorld world(8, 7, 15, 5);
  const auto ranker = make(5);
  for (std::uint32_t round = 1; round <= 10; ++round)
    play_perfect(*ranker, context_.round, world, round, kCutoff);
  const QueryDocs query = world.query_of(11);
  ranker->rank(context_.round, query, 11);
  RoundDetail detail;
  ranker->describe(query, false, detail);
  const std::vector<float> scores = scores_of(*ranker, query.features);
  EXPECT_EQ(detail.scores, std::vector<double>(scores.begin(), scores.end()));
  EXPECT_TRUE(detail.theta.empty());
  ranker->describe(query, true, detail);
  EXPECT_EQ(detail.theta, std::vector<std::vector<float>>{theta_of(*ranker)});
  EXPECT_TRUE(detail.width_sq.empty());
  EXPECT_TRUE(detail.certain.empty());
  EXPECT_TRUE(ranker->figures(context_.execution).empty());
  EXPECT_EQ(ranker->parameters(), 5);
}

TEST_P(BanditRankersTest, ClicksWithoutContrastChangeNothing) {
  const SmallWorld world(9, 3, 15, 5);
  const auto ranker = make(5);
  const Docs shown = shown_of(ranker->rank(context_.round, world.query(0), 1), 10);
  const LearnReport report = ranker->learn(context_.round, {1, world.query(0), shown, Clicks(10, 0)});
  EXPECT_TRUE(report.pairs.empty());
  EXPECT_TRUE(report.steps.empty());
  EXPECT_EQ(theta_of(*ranker), std::vector<float>(5, 0.0F));
}

TEST_P(BanditRankersTest, RefusesInvalidFeedback) {
  const SmallWorld world(11, 3, 4, 5);
  const auto ranker = make(5);
  const auto learn = [&](const Docs& shown, const Clicks& clicks) {
    ranker->learn(context_.round, {1, world.query(0), shown, clicks});
  };
  EXPECT_THROW(learn({0, 1, 2}, {1, 0}), InvalidArgument);
  EXPECT_THROW(learn({0, 4}, {1, 0}), InvalidArgument);
  EXPECT_THROW(learn({-1, 1}, {1, 0}), InvalidArgument);
  EXPECT_THROW(learn({1, 2, 1}, {1, 0, 0}), InvalidArgument);
}

TEST_P(BanditRankersTest, ReportsScoresThatAreNotFinite) {
  const SmallWorld world(12, 3, 4, 5);
  const auto ranker = make(5, std::vector<float>(5, std::numeric_limits<float>::max()));
  EXPECT_THROW(ranker->rank(context_.round, world.query(0), 1), NumericError);
}

TEST_P(BanditRankersTest, LearnsASeparableWorldFromAPerfectUser) {
  const SmallWorld world(13, 50, 15, 6);
  const auto ranker = make(6);
  const double untrained = world.ndcg(*ranker, kCutoff);
  for (std::uint32_t round = 1; round <= 2000; ++round)
    play_perfect(*ranker, context_.round, world, round, kCutoff);
  const double trained = world.ndcg(*ranker, kCutoff);
  RecordProperty("untrained", std::to_string(untrained));
  RecordProperty("trained", std::to_string(trained));
  EXPECT_LT(untrained, 0.7);
  EXPECT_GT(trained, 0.85) << "from " << untrained;
}

INSTANTIATE_TEST_SUITE_P(All, BanditRankersTest, testing::ValuesIn(bandit_names()), kOwnName);

// FairCo, TopRank, and rankers with certain orders that are made fair.

constexpr std::int64_t kFairCutoff = 6;

const SmallWorld& fair_world() {
  static const SmallWorld made(29, 8, 15, 5);
  return made;
}

const ExposureRule& fair_rule() {
  static const ExposureRule rule{{1.0, 0.8, 0.6, 0.5, 0.4, 0.3}, {1.2}, 0.6};
  return rule;
}

std::vector<DocGroup> groups_of(const QueryDocs& query) {
  std::vector<DocGroup> groups;
  for (std::int64_t doc = 0; doc < query.docs(); ++doc)
    groups.push_back((doc * 5 + query.query) % 3 == 0 ? DocGroup::kA : DocGroup::kB);
  return groups;
}

std::unique_ptr<OnlineRanker> make_fair(RankerKind kind, Fairness fair,
                                        NetworkForm network = NetworkForm::kLinear) {
  RankerSettings settings = RankerSettings::defaults(kind, ProtocolName::kRecommended);
  settings.name = "fair";
  if (row_of(kind).forms == ModelForms::kEither) settings.network.network = network;
  settings.network.width = 6;
  settings.posterior.members = 3;
  settings.trainer.steps = 4;
  settings.fair.fair = fair;
  settings.fair.fair_gain = 0.5;
  return make_ranker(settings, fair_world().features(), TrialKeys::of(5, 1, "fair"), kFairCutoff, {});
}

struct Played {
  ExposureLedger ledger;
  std::vector<Docs> lists;
  std::int64_t unrealisable = 0;
};

Played play(OnlineRanker& ranker, std::uint32_t first, std::uint32_t last, Played played = {}) {
  TestContext context;
  for (std::uint32_t round = first; round <= last; ++round) {
    QueryDocs query = fair_world().query_of(round);
    const std::vector<DocGroup> groups = groups_of(query);
    const FairRound fair{groups, &fair_rule(), played.ledger.unfairness()};
    query.fair = &fair;
    const RankedList list = ranker.rank(context.round, query, round);
    EXPECT_TRUE(list.fairness.has_value());
    played.unrealisable += list.fairness->realisable ? 0 : 1;
    played.lists.emplace_back(list.docs.begin(), list.docs.end());
    const std::vector<std::int32_t> shown(list.docs.begin(), list.docs.begin() + kFairCutoff);
    played.ledger.observe(fair_rule(), groups, shown);
    ranker.learn(context.round, {round, query, shown, fair_world().perfect_clicks(query.query, shown)});
  }
  return played;
}

class FairRankersTest : public testing::TestWithParam<std::string> {
 protected:
  RankerKind kind() const { return *value_named<RankerKind>(GetParam()); }
};

TEST_P(FairRankersTest, FairExpKeepsTheBoundInEveryRound) {
  const auto ranker = make_fair(kind(), Fairness::kFairExp, NetworkForm::kMlp);
  const Played played = play(*ranker, 1, 60);
  // Every query has five documents of a group and ten of the other.
  EXPECT_EQ(played.unrealisable, 0);
  EXPECT_EQ(played.ledger.fair_rounds(), 60);
}

TEST_P(FairRankersTest, WithoutFairnessGroupsChangeNoBit) {
  const auto with = make_fair(kind(), Fairness::kNone, NetworkForm::kMlp);
  const auto without = make_fair(kind(), Fairness::kNone, NetworkForm::kMlp);
  const Played played = play(*with, 1, 20);
  TestContext context;
  for (std::uint32_t round = 1; round <= 20; ++round) {
    const QueryDocs query = fair_world().query_of(round);
    const RankedList list = without->rank(context.round, query, round);
    EXPECT_FALSE(list.fairness.has_value());
    EXPECT_EQ(std::vector<std::int32_t>(list.docs.begin(), list.docs.end()), played.lists[round - 1]);
    const std::vector<std::int32_t> shown(list.docs.begin(), list.docs.begin() + kFairCutoff);
    without->learn(context.round, {round, query, shown, fair_world().perfect_clicks(query.query, shown)});
  }
  EXPECT_EQ(state_of(*with), state_of(*without));
}

TEST_P(FairRankersTest, ControlBringsTheGroupsTogether) {
  const Played plain = play(*make_fair(kind(), Fairness::kNone, NetworkForm::kMlp), 1, 60);
  const Played controlled = play(*make_fair(kind(), Fairness::kFairCo, NetworkForm::kMlp), 1, 60);
  EXPECT_LT(std::abs(controlled.ledger.unfairness()[0]), 0.5 * std::abs(plain.ledger.unfairness()[0]));
}

INSTANTIATE_TEST_SUITE_P(Kinds, FairRankersTest,
                         testing::Values("pairrank", "olranknet", "ollambdarank", "p2linrank", "p2neurrank",
                                         "toprank"));

TEST(FairControl, RaisesTheGroupWithTooLittle) {
  const FairRound ahead{{}, &fair_rule(), 2.4};
  EXPECT_EQ(fair_control(ahead, 0.1, DocGroup::kA), 0.0);
  EXPECT_NEAR(fair_control(ahead, 0.1, DocGroup::kB), 0.2, 1e-12);
  const FairRound behind{{}, &fair_rule(), -2.4};
  EXPECT_NEAR(fair_control(behind, 0.1, DocGroup::kA), 0.2, 1e-12);
  EXPECT_EQ(fair_control(behind, 0.1, DocGroup::kB), 0.0);
}

TEST(FairCoTest, LinearEstimateSolvesTheNormalEquations) {
  const auto ranker = make_fair(RankerKind::kFairCo, Fairness::kFairCo);
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Identity(5, 5);
  Eigen::VectorXd target = Eigen::VectorXd::Zero(5);
  TestContext context;
  for (std::uint32_t round = 1; round <= 12; ++round) {
    QueryDocs query = fair_world().query_of(round);
    const std::vector<DocGroup> groups = groups_of(query);
    const FairRound fair{groups, &fair_rule(), 0.0};
    query.fair = &fair;
    const std::vector<std::int32_t> shown = {3, 9, static_cast<std::int32_t>(round % 3), 12};
    const std::vector<std::uint8_t> clicks = {1, 0, 1, static_cast<std::uint8_t>(round % 2)};
    ranker->learn(context.round, {round, query, shown, clicks});
    for (std::size_t rank = 0; rank < shown.size(); ++rank) {
      Eigen::VectorXd x(5);
      for (int k = 0; k < 5; ++k) x[k] = query.features.doc(shown[rank])[k];
      matrix += x * x.transpose();
      target += x * (clicks[rank] / fair_rule().examination[rank]);
    }
  }
  const Eigen::VectorXd expected = matrix.ldlt().solve(target);
  const ModelTensors model = ranker->model();
  for (int k = 0; k < 5; ++k) EXPECT_NEAR(model.tensors[0].values[k], expected[k], 1e-5);
}

TEST(FairCoTest, NetworkComesCloserToTheTargets) {
  const auto ranker = make_fair(RankerKind::kFairCo, Fairness::kFairCo, NetworkForm::kMlp);
  const auto quality = [&] {
    double wrong = 0.0;
    for (std::int64_t number = 0; number < fair_world().queries(); ++number) {
      const QueryDocs query = fair_world().query(number);
      const std::vector<float> scores = scores_of(*ranker, query.features);
      for (std::int32_t i = 0; i < query.docs(); ++i) {
        for (std::int32_t j = 0; j < query.docs(); ++j)
          wrong += fair_world().grade(number, i) > fair_world().grade(number, j) && scores[i] <= scores[j];
      }
    }
    return wrong;
  };
  const double before = quality();
  play(*ranker, 1, 150);
  EXPECT_LT(quality(), 0.5 * before);
}

TEST(FairCoTest, NeedsTheProbabilitiesOfExamination) {
  const auto ranker = make_fair(RankerKind::kFairCo, Fairness::kFairCo);
  TestContext context;
  const QueryDocs query = fair_world().query(0);
  EXPECT_THROW(ranker->learn(context.round, {1, query, Docs{0}, Clicks{1}}), InvalidArgument);
}

TEST(TopRankTest, ThresholdIsThePapers) {
  // √(2·9·ln(3.3437·3/0.1)) by hand: ln(100.31) = 4.6083.
  EXPECT_NEAR(toprank_threshold(9, 0.1), std::sqrt(18.0 * 4.6083), 1e-3);
}

TEST(TopRankTest, OrdersAppearOnceClicksLeadByMoreThanChance) {
  RankerSettings settings = RankerSettings::defaults(RankerKind::kTopRank, ProtocolName::kRecommended);
  settings.name = "fair";
  settings.explore.delta = 0.1;
  const auto ranker = make_ranker(settings, 5, TrialKeys::of(5, 1, "fair"), 3, {});
  TestContext context;
  const QueryDocs query = fair_world().query(0);
  // Document 7 alone is clicked: after n rounds it leads each other document by n of n clicks.
  std::int64_t needed = 1;
  while (static_cast<double>(needed) < toprank_threshold(needed, 0.1)) ++needed;
  for (std::int64_t round = 1; round <= needed; ++round) {
    RoundDetail detail;
    ranker->rank(context.round, query, static_cast<std::uint32_t>(round));
    ranker->describe(query, true, detail);
    EXPECT_EQ(std::count(detail.certain.begin(), detail.certain.end(), 1), 0);
    ranker->learn(context.round,
                  {static_cast<std::uint32_t>(round), query, Docs{7, 1, 2}, Clicks{1, 0, 0}});
  }
  const RankedList list = ranker->rank(context.round, query, 1000);
  EXPECT_EQ(list.docs[0], 7);
  EXPECT_EQ(list.certainty->blocks, 2);
  RoundDetail detail;
  ranker->describe(query, true, detail);
  EXPECT_EQ(std::count(detail.certain.begin(), detail.certain.end(), 1), query.docs() - 1);
  EXPECT_EQ(detail.scores[7], 0.0);
  EXPECT_EQ(detail.scores[1], -1.0);
}

TEST(FairRankers, RestoredOnesGoOnWithTheSameBits) {
  for (const RankerKind kind : {RankerKind::kTopRank, RankerKind::kFairCo}) {
    for (const NetworkForm network : {NetworkForm::kLinear, NetworkForm::kMlp}) {
      const Fairness fair = kind == RankerKind::kTopRank ? Fairness::kFairExp : Fairness::kFairCo;
      const auto whole = make_fair(kind, fair, network);
      const Played half = play(*whole, 1, 25);
      const auto restored = make_fair(kind, fair, network);
      load_state(*restored, state_of(*whole));
      const Played one = play(*whole, 26, 50, half);
      const Played other = play(*restored, 26, 50, half);
      EXPECT_EQ(one.lists, other.lists);
      EXPECT_EQ(state_of(*whole), state_of(*restored));
    }
  }
}

}  // namespace
}  // namespace olrank
