#include "models/baselines/dueling_bandit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "tests/support/chi_square.h"

namespace olrank {
namespace {

using Docs = std::vector<std::int32_t>;

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
    Docs row(docs);
    std::iota(row.begin(), row.end(), 0);
    draws.shuffle(std::span<std::int32_t>(row));
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
  std::vector<double> preferences(3);
  team_draft_preferences(Docs{1, 0, 2, 2, 0, 1}, std::vector<std::uint8_t>{1, 0, 1, 0, 1, 1}, scratch,
                         preferences);
  EXPECT_EQ(preferences, (std::vector<double>{0, 1, 0}));
  team_draft_preferences(Docs{1, 0, 2}, std::vector<std::uint8_t>{0, 1, 0}, scratch, preferences);
  EXPECT_EQ(preferences, (std::vector<double>{0, -1, -1}));
  team_draft_preferences(Docs{1, 0, 2}, std::vector<std::uint8_t>{0, 0, 0}, scratch, preferences);
  EXPECT_EQ(preferences, (std::vector<double>{0, 0, 0}));
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
      Docs list(docs);
      std::iota(list.begin(), list.end(), 0);
      std::map<Docs, std::int64_t> seen;
      std::vector<double> probabilities;
      do {
        seen[list] = 0;
        probabilities.push_back(list_probability(owned.view(), kTemperature, list));
      } while (std::next_permutation(list.begin(), list.end()));
      EXPECT_NEAR(std::accumulate(probabilities.begin(), probabilities.end(), 0.0), 1.0, 1e-12);
      for (std::uint32_t round = 1; round <= 100'000; ++round) {
        probabilistic_list(owned.view(), weights, interleaving_key(3), round, scratch, list);
        ++seen.at(list);
      }
      std::vector<std::int64_t> counts;
      for (const auto& [order, count] : seen) counts.push_back(count);
      EXPECT_TRUE(counts_follow(counts, probabilities)) << rankers << " rankers, " << docs << " documents";
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

TEST(ProbabilisticInterleavingTest, HasNoPreferenceWithoutClicks) {
  Scratch scratch;
  const OwnedRankings owned = random_rankings(9, 3, 5);
  std::vector<double> weights(5);
  rank_weights(3.0, weights);
  std::vector<double> preferences(3, 7.0);
  probabilistic_preferences(owned.view(), weights, Docs{0, 1}, std::vector<std::uint8_t>{0, 0},
                            interleaving_key(7), 1, scratch, preferences);
  EXPECT_EQ(preferences, (std::vector<double>{0, 0, 0}));
}

}  // namespace
}  // namespace olrank
