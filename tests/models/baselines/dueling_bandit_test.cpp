#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "models/baselines/baselines.h"
#include "tests/models/small_world.h"
#include "tests/support/chi_square.h"

namespace olrank {
namespace {

using Docs = std::vector<std::int32_t>;
using Clicks = std::vector<std::uint8_t>;

constexpr std::int64_t kDocs = 12;
constexpr std::int64_t kFeatures = 4;

/// A round by the text of the papers, computed separately: directions, rankings, the shared list.
struct Expected {
  std::vector<std::vector<double>> directions;
  Docs rankings;
  Docs list = Docs(kDocs);
  Docs teams = Docs(kDocs);
};

Expected draft(const std::vector<float>& theta, const RankerSettings& settings, std::size_t candidates,
               const QueryDocs& query, std::uint32_t round) {
  Expected made;
  const TrialKeys keys = TrialKeys::of(1, 1, "test");
  for (std::size_t ranker = 0; ranker <= candidates; ++ranker) {
    std::vector<double> tried(theta.begin(), theta.end());
    if (ranker > 0) {
      std::vector<double> direction(kFeatures);
      RngStream(keys.key(Purpose::kDirection), round, static_cast<std::uint32_t>(ranker - 1))
          .unit_vector(direction);
      for (std::size_t k = 0; k < tried.size(); ++k) {
        tried[k] += settings.bandit.exploration_radius * direction[k];
      }
      made.directions.push_back(direction);
    }
    std::vector<double> scores;
    for (std::int64_t doc = 0; doc < kDocs; ++doc) scores.push_back(dot(tried, query.features.doc(doc)));
    Docs ranking(kDocs);
    std::iota(ranking.begin(), ranking.end(), 0);
    std::stable_sort(ranking.begin(), ranking.end(),
                     [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
    made.rankings.insert(made.rankings.end(), ranking.begin(), ranking.end());
  }
  Scratch scratch;
  team_draft({made.rankings, candidates + 1, kDocs}, keys.key(Purpose::kInterleaving), round, scratch,
             made.list, made.teams);
  return made;
}

void expect_moves_by_the_mean_of_the_winners(const std::string& name, std::size_t candidates) {
  const SmallWorld world(3, 5, kDocs, kFeatures);
  RankerSettings settings = bandit_settings(name);
  settings.bandit.exploration_radius = 0.5;
  settings.trainer.learning_rate = 0.25;
  settings.trainer.learning_rate_decay = 0.9;
  const auto ranker = make_bandit(settings, kFeatures);
  TestContext context;
  int won = 0;
  int rounds_of_several = 0;
  for (std::uint32_t round = 1; round <= 40; ++round) {
    const QueryDocs query = world.query_of(round);
    const std::vector<float> before = theta_of(*ranker);
    const Expected expected = draft(before, settings, candidates, query, round);
    const RankedList list = ranker->rank(context.round, query, round);
    const Docs shown(list.docs.begin(), list.docs.end());
    ASSERT_EQ(shown, expected.list);
    Clicks clicks(kDocs, 0);
    std::vector<int> counts(candidates + 1, 0);
    for (const std::uint32_t rank : {round % 12, (5 * round + 1) % 12, (7 * round + 3) % 12}) {
      if (clicks[rank] != 0) continue;
      clicks[rank] = 1;
      ++counts[expected.teams[rank]];
    }
    std::vector<double> sum(kFeatures, 0.0);
    int winners = 0;
    for (std::size_t candidate = 1; candidate <= candidates; ++candidate) {
      if (counts[candidate] <= counts[0]) continue;
      ++winners;
      for (std::size_t k = 0; k < kFeatures; ++k) sum[k] += expected.directions[candidate - 1][k];
    }
    won += winners > 0 ? 1 : 0;
    rounds_of_several += winners > 1 ? 1 : 0;
    const LearnReport report = ranker->learn(context.round, {round, query, shown, clicks});
    EXPECT_TRUE(report.pairs.empty());
    EXPECT_TRUE(report.steps.empty());
    const double step = 0.25 * std::pow(0.9, round - 1);
    for (std::size_t k = 0; k < kFeatures; ++k) {
      const double moved = before[k] + (winners > 0 ? step * (sum[k] / winners) : 0.0);
      ASSERT_EQ(theta_of(*ranker)[k], static_cast<float>(moved)) << round;
    }
  }
  EXPECT_GT(won, 5);
  EXPECT_LT(won, 40);  // draws change nothing
  EXPECT_EQ(rounds_of_several > 10, candidates > 1);
}

TEST(DuelingBanditTest, MovesByTheMeanOfTheCandidatesWhoseTeamsWin) {
  expect_moves_by_the_mean_of_the_winners("dbgd_team_draft", 1);
  expect_moves_by_the_mean_of_the_winners("mgd_team_draft", 9);
}

TEST(DuelingBanditTest, ProbabilisticCreditFollowsTheRankersOrders) {
  // A click on the document that the candidate ranks first and the current ranker last is the candidate's,
  // and the other way round.
  const std::vector<float> values = {0.0F, 1.0F, 2.0F, 3.0F};
  const QueryDocs query{0, 0, {values.data(), 4, 1}};
  RankerSettings settings = bandit_settings("dbgd_probabilistic");
  settings.bandit.exploration_radius = 10.0;
  TestContext context;
  for (std::uint32_t round = 1; round <= 10; ++round) {
    std::vector<double> direction(1);
    RngStream(TrialKeys::of(1, 1, "test").key(Purpose::kDirection), round, 0).unit_vector(direction);
    const auto against = static_cast<float>(-direction[0]);  // the current ranker, overruled by the radius
    for (const bool candidates_best : {true, false}) {
      const auto ranker = make_bandit(settings, 1, {against});
      const std::int32_t clicked = (direction[0] > 0) == candidates_best ? 3 : 0;
      ranker->learn(context.round, {round, query, Docs{clicked, 1, 2}, Clicks{1, 0, 0}});
      const double step = candidates_best ? settings.trainer.learning_rate : 0.0;
      EXPECT_FLOAT_EQ(theta_of(*ranker)[0], static_cast<float>(against + step * direction[0]));
    }
  }
}

PhiloxKey interleaving_key(std::uint64_t seed) {
  return make_key({.seed = seed, .purpose = Purpose::kInterleaving});
}

/// Rankings that own their documents.
struct OwnedRankings {
  Docs values;
  std::size_t rankers;
  std::size_t docs;

  Rankings view() const { return {values, rankers, docs}; }
};

OwnedRankings random_rankings(std::uint64_t seed, std::size_t rankers, std::size_t docs) {
  OwnedRankings made{{}, rankers, docs};
  RngStream draws(interleaving_key(seed), 0);
  for (std::size_t r = 0; r < rankers; ++r) {
    const Docs row = shuffled(draws, static_cast<std::int64_t>(docs));
    made.values.insert(made.values.end(), row.begin(), row.end());
  }
  return made;
}

TEST(TeamDraftTest, DraftsFairlyAndPicksTheBestRemainingDocument) {
  Scratch scratch;
  for (const std::size_t rankers : {2U, 3U, 10U}) {
    for (const std::size_t docs : {1U, 2U, 3U, 10U, 57U}) {
      const OwnedRankings owned = random_rankings(rankers * 100 + docs, rankers, docs);
      for (std::uint32_t round = 1; round <= 20; ++round) {
        Docs list(docs);
        Docs teams(docs);
        team_draft(owned.view(), interleaving_key(1), round, scratch, list, teams);
        std::vector<int> sizes(rankers, 0);
        std::set<std::int32_t> placed;
        for (std::size_t rank = 0; rank < docs; ++rank) {
          const auto team = static_cast<std::size_t>(teams[rank]);
          for (const std::int32_t doc : owned.view().of(team)) {
            if (placed.contains(doc)) continue;
            EXPECT_EQ(list[rank], doc) << "the best that ranker " << team << " has left";
            break;
          }
          EXPECT_TRUE(placed.insert(list[rank]).second);
          ++sizes[team];
          const auto [smallest, largest] = std::minmax_element(sizes.begin(), sizes.end());
          EXPECT_LE(*largest - *smallest, 1) << "at every length of the list";
        }
      }
    }
  }
}

TEST(TeamDraftTest, EachRankerIsFirstEquallyOften) {
  Scratch scratch;
  const OwnedRankings owned = random_rankings(7, 5, 12);
  std::vector<std::int64_t> first(5, 0);
  std::vector<std::int64_t> second_cycle(5, 0);
  Docs list(12);
  Docs teams(12);
  for (std::uint32_t round = 1; round <= 50'000; ++round) {
    team_draft(owned.view(), interleaving_key(2), round, scratch, list, teams);
    ++first[teams[0]];
    ++second_cycle[teams[5]];
  }
  EXPECT_TRUE(counts_are_even(first));
  EXPECT_TRUE(counts_are_even(second_cycle));
}

TEST(TeamDraftTest, PrefersTheTeamWithMoreClicks) {
  Scratch scratch;
  const auto preferences_of = [&](const Docs& teams, const Clicks& clicks) {
    std::vector<double> preferences(3);
    team_draft_preferences(teams, clicks, scratch, preferences);
    return preferences;
  };
  EXPECT_EQ(preferences_of({1, 0, 2, 2, 0, 1}, {1, 0, 1, 0, 1, 1}), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(preferences_of({1, 0, 2}, {0, 1, 0}), (std::vector<double>{0, -1, -1}));
  EXPECT_EQ(preferences_of({1, 0, 2}, {0, 0, 0}), (std::vector<double>{0, 0, 0}));
}

/// P(doc | ranker, what is placed): the softmax over ranks, from its definition.
double softmax(std::span<const std::int32_t> ranking, double temperature, const Docs& placed,
               std::int32_t doc) {
  double sum = 0.0;
  double own = 0.0;
  for (std::size_t rank = 0; rank < ranking.size(); ++rank) {
    if (std::find(placed.begin(), placed.end(), ranking[rank]) != placed.end()) continue;
    const double weight = 1.0 / std::pow(static_cast<double>(rank + 1), temperature);
    sum += weight;
    if (ranking[rank] == doc) own = weight;
  }
  return own / sum;
}

double list_probability(const Rankings& rankings, double temperature, const Docs& list) {
  double probability = 1.0;
  Docs placed;
  for (const std::int32_t doc : list) {
    double mean = 0.0;
    for (std::size_t r = 0; r < rankings.rankers; ++r) {
      mean += softmax(rankings.of(r), temperature, placed, doc) / static_cast<double>(rankings.rankers);
    }
    probability *= mean;
    placed.push_back(doc);
  }
  return probability;
}

TEST(ProbabilisticInterleavingTest, ListsHaveTheirExactProbabilities) {
  Scratch scratch;
  for (const std::size_t rankers : {2U, 3U}) {
    for (const std::size_t docs : {3U, 4U}) {
      // A mild temperature: with 3 the rarest lists would be too rare for χ².
      constexpr double kTemperature = 1.0;
      const OwnedRankings owned = random_rankings(rankers + 10 * docs, rankers, docs);
      std::vector<double> weights(docs);
      rank_weights(kTemperature, weights);
      EXPECT_TRUE(orders_follow(
          docs, 100'000,
          [&](const Docs& list) { return list_probability(owned.view(), kTemperature, list); },
          [&](std::uint32_t round, Docs& list) {
            probabilistic_list(owned.view(), weights, interleaving_key(3), round, scratch, list);
          }))
          << rankers << " rankers, " << docs << " documents";
    }
  }
}

TEST(ProbabilisticInterleavingTest, LongListsArePermutationsAtAnyTemperature) {
  Scratch scratch;
  const OwnedRankings owned = random_rankings(5, 3, 1251);
  std::vector<double> weights(1251);
  for (const double temperature : {0.1, 3.0, 32.0}) {
    rank_weights(temperature, weights);
    Docs list(1251);
    probabilistic_list(owned.view(), weights, interleaving_key(4), 1, scratch, list);
    std::sort(list.begin(), list.end());
    for (std::size_t i = 0; i < list.size(); ++i) ASSERT_EQ(list[i], static_cast<std::int32_t>(i));
  }
}

TEST(ProbabilisticInterleavingTest, PosteriorOfAssignmentsIsBayesRule) {
  Scratch scratch;
  const OwnedRankings owned = random_rankings(6, 4, 9);
  std::vector<double> weights(9);
  rank_weights(3.0, weights);
  Docs list(9);
  probabilistic_list(owned.view(), weights, interleaving_key(5), 1, scratch, list);
  for (std::size_t rank = 0; rank < list.size(); ++rank) {
    const Docs placed(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(rank));
    std::vector<double> expected(4);
    for (std::size_t r = 0; r < 4; ++r) expected[r] = softmax(owned.view().of(r), 3.0, placed, list[rank]);
    const double total = std::accumulate(expected.begin(), expected.end(), 0.0);
    std::vector<double> posterior(4);
    assignment_posterior(owned.view(), weights, placed, list[rank], scratch, posterior);
    for (std::size_t r = 0; r < 4; ++r) EXPECT_NEAR(posterior[r], expected[r] / total, 1e-14);
  }
}

TEST(ProbabilisticInterleavingTest, PreferencesAverageOverAssignments) {
  // All 3^2 assignments of two clicks written out, against the samples of 200 rounds; the mean of as many
  // signs has a standard error of at most 1/√200,000, and five of them give false alarms under 1e-6.
  Scratch scratch;
  const OwnedRankings owned = random_rankings(8, 3, 5);
  std::vector<double> weights(5);
  rank_weights(3.0, weights);
  const Docs shown = {3, 1, 4};
  const std::vector<std::uint8_t> clicks = {1, 0, 1};
  std::vector<double> first(3);
  std::vector<double> third(3);
  assignment_posterior(owned.view(), weights, std::span(shown).first(0), shown[0], scratch, first);
  assignment_posterior(owned.view(), weights, std::span(shown).first(2), shown[2], scratch, third);
  std::vector<double> expected(3, 0.0);
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b < 3; ++b) {
      std::vector<int> counts(3, 0);
      ++counts[a];
      ++counts[b];
      for (std::size_t r = 0; r < 3; ++r) {
        expected[r] += first[a] * third[b] * ((counts[r] > counts[0]) - (counts[r] < counts[0]));
      }
    }
  }
  constexpr int kRounds = 200;
  std::vector<double> mean(3, 0.0);
  std::vector<double> preferences(3);
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    probabilistic_preferences(owned.view(), weights, shown, clicks, interleaving_key(6), round, scratch,
                              preferences);
    for (std::size_t r = 0; r < 3; ++r) mean[r] += preferences[r] / kRounds;
  }
  for (std::size_t r = 0; r < 3; ++r) {
    EXPECT_NEAR(mean[r], expected[r], 5.0 / std::sqrt(kRounds * double{kSampledAssignments}));
  }
  EXPECT_EQ(mean[0], 0.0);
}

}  // namespace
}  // namespace olrank
