#include "core/feedback/preference_pairs.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/chi_square.h"

namespace olrank {
namespace {

using Docs = std::vector<std::int32_t>;
using Clicks = std::vector<std::uint8_t>;
using Pairs = std::vector<PreferencePair>;

const PhiloxKey kBatchKey = make_key({.seed = 9, .purpose = Purpose::kBatch, .fold = 1});

Pairs pairs_of(PairRule rule, const Docs& shown, const Clicks& clicks, std::uint32_t round = 1) {
  Pairs pairs = {{7, 7}};  // what was there before goes
  preference_pairs(rule, shown, clicks, RngStream(kBatchKey, round), pairs);
  return pairs;
}

TEST(ExaminedDocumentsTest, EndOnePastTheLastClick) {
  EXPECT_EQ(examined_documents(Clicks{}), 0);
  EXPECT_EQ(examined_documents(Clicks{0}), 0);
  EXPECT_EQ(examined_documents(Clicks{1}), 1);
  EXPECT_EQ(examined_documents(Clicks{0, 0, 0}), 0);
  EXPECT_EQ(examined_documents(Clicks{1, 0, 0}), 2);
  EXPECT_EQ(examined_documents(Clicks{0, 1, 0, 0}), 3);
  EXPECT_EQ(examined_documents(Clicks{1, 0, 1, 0, 0}), 4);
  EXPECT_EQ(examined_documents(Clicks{0, 0, 1}), 3);
  EXPECT_EQ(examined_documents(Clicks{1, 1, 1}), 3);
}

TEST(PreferencePairsTest, NoPairsWithoutBothClickedAndUnclicked) {
  for (const PairRule rule :
       {PairRule::kAdjacent, PairRule::kMatched, PairRule::kExpected, PairRule::kAll}) {
    EXPECT_EQ(pairs_of(rule, {}, {}), Pairs{});
    EXPECT_EQ(pairs_of(rule, {4}, {0}), Pairs{});
    EXPECT_EQ(pairs_of(rule, {4}, {1}), Pairs{});
    EXPECT_EQ(pairs_of(rule, {4, 2, 9}, {0, 0, 0}), Pairs{});
    EXPECT_EQ(pairs_of(rule, {4, 2, 9}, {1, 1, 1}), Pairs{});
  }
}

TEST(PreferencePairsTest, AdjacentPairsAreDisjointNeighbours) {
  EXPECT_EQ(pairs_of(PairRule::kAdjacent, {4, 2}, {1, 0}), (Pairs{{4, 2}}));
  EXPECT_EQ(pairs_of(PairRule::kAdjacent, {4, 2}, {0, 1}), (Pairs{{2, 4}}));
  // Ranks 2 and 3 differ, but they are neighbours of different pairs.
  EXPECT_EQ(pairs_of(PairRule::kAdjacent, {4, 2, 9, 1}, {1, 1, 0, 0}), Pairs{});
  // Click at the last rank, at an even and at an odd number of ranks.
  EXPECT_EQ(pairs_of(PairRule::kAdjacent, {4, 2, 9, 1}, {0, 0, 0, 1}), (Pairs{{1, 9}}));
  EXPECT_EQ(pairs_of(PairRule::kAdjacent, {4, 2, 9, 1, 5}, {0, 1, 0, 0, 1}), (Pairs{{2, 4}}));
  // The first unclicked document after the last click was examined; the one behind it was not.
  EXPECT_EQ(pairs_of(PairRule::kAdjacent, {4, 2, 9, 1, 5, 6}, {0, 1, 1, 0, 0, 0}), (Pairs{{2, 4}, {9, 1}}));
  EXPECT_EQ(pairs_of(PairRule::kAdjacent, {4, 2, 9, 1}, {0, 1, 0, 0}), (Pairs{{2, 4}}));
  EXPECT_EQ(pairs_of(PairRule::kAdjacent, {4, 2, 9, 1}, {1, 0, 1, 0}), (Pairs{{4, 2}, {9, 1}}));
}

TEST(PreferencePairsTest, AllPairsAreTheProductByWinnerThenLoser) {
  EXPECT_EQ(pairs_of(PairRule::kAll, {4, 2}, {1, 0}), (Pairs{{4, 2}}));
  EXPECT_EQ(pairs_of(PairRule::kAll, {4, 2, 9, 1, 5, 6}, {0, 1, 1, 0, 0, 0}),
            (Pairs{{2, 4}, {2, 1}, {9, 4}, {9, 1}}));
  EXPECT_EQ(pairs_of(PairRule::kAll, {4, 2, 9}, {0, 0, 1}), (Pairs{{9, 4}, {9, 2}}));
  EXPECT_EQ(pairs_of(PairRule::kAll, {4, 2, 9}, {1, 1, 0}), (Pairs{{4, 9}, {2, 9}}));
}

TEST(PreferencePairsTest, MatchedPairsUseEachExaminedDocumentAtMostOnce) {
  const Docs shown = {4, 2, 9, 1, 5, 6};
  for (std::uint32_t round = 1; round <= 200; ++round) {
    // Two clicked, examined and unclicked are 4 and 1; 5 and 6 were not examined.
    const Pairs pairs = pairs_of(PairRule::kMatched, shown, {0, 1, 1, 0, 0, 0}, round);
    ASSERT_EQ(pairs.size(), 2U);
    for (const PreferencePair& pair : pairs) {
      ASSERT_TRUE(pair.winner == 2 || pair.winner == 9);
      ASSERT_TRUE(pair.loser == 4 || pair.loser == 1);
    }
    ASSERT_NE(pairs[0].winner, pairs[1].winner);
    ASSERT_NE(pairs[0].loser, pairs[1].loser);
    // As many pairs as the fewer of the two kinds.
    ASSERT_EQ(pairs_of(PairRule::kMatched, shown, {0, 0, 0, 0, 0, 1}, round).size(), 1U);
    ASSERT_EQ(pairs_of(PairRule::kMatched, shown, {1, 1, 1, 1, 0, 0}, round).size(), 1U);
  }
}

/// χ² of 30,000 rounds over all sets of pairs, each of the same probability.
void expect_uniform_matching(const Docs& shown, const Clicks& clicks, std::size_t matchings) {
  std::map<std::vector<std::pair<std::int32_t, std::int32_t>>, std::int64_t> seen;
  for (std::uint32_t round = 1; round <= 30'000; ++round) {
    std::vector<std::pair<std::int32_t, std::int32_t>> matching;
    for (const auto& [winner, loser] : pairs_of(PairRule::kMatched, shown, clicks, round)) {
      matching.emplace_back(winner, loser);
    }
    std::sort(matching.begin(), matching.end());
    ++seen[matching];
  }
  ASSERT_EQ(seen.size(), matchings);
  std::vector<std::int64_t> counts;
  for (const auto& [matching, count] : seen) counts.push_back(count);
  const ChiSquare chi =
      chi_square(counts, std::vector<double>(matchings, 1.0 / static_cast<double>(matchings)));
  EXPECT_TRUE(chi.statistic <= chi.bound(kTail)) << chi.statistic << " of " << chi.degrees;
}

TEST(PreferencePairsTest, MatchedPairsAreAUniformMatching) {
  expect_uniform_matching({0, 1, 2, 3, 4, 5}, {1, 0, 1, 0, 1, 0}, 6);      // 3 with 3: 3!
  expect_uniform_matching({5, 1, 2, 3, 4, 0}, {0, 0, 0, 1, 1, 0}, 4 * 3);  // 2 with 2 of 4
  expect_uniform_matching({5, 1, 2, 3, 4, 0}, {1, 1, 0, 1, 1, 1}, 5);      // any of 5 with 1
}

// How often each pair is in a uniform matching, by enumeration above: 1/3 of 3!, 1/4 of 4 · 3, 1/5 of 5.
TEST(LossPairsTest, WeightsAreTheProbabilityOfBeingMatched) {
  const struct {
    Docs shown;
    Clicks clicks;
    std::size_t pairs;
    double weight;
  } cases[] = {{{0, 1, 2, 3, 4, 5}, {1, 0, 1, 0, 1, 0}, 9, 1.0 / 3.0},
               {{5, 1, 2, 3, 4, 0}, {0, 0, 0, 1, 1, 0}, 8, 1.0 / 4.0},
               {{5, 1, 2, 3, 4, 0}, {1, 1, 0, 1, 1, 1}, 5, 1.0 / 5.0},
               {{5, 1, 2}, {1, 0, 0}, 1, 1.0},
               {{5, 1, 2}, {0, 0, 0}, 0, 1.0}};
  LossPairs loss;
  for (const auto& one : cases) {
    const Pairs drawn = pairs_of(PairRule::kExpected, one.shown, one.clicks);
    EXPECT_EQ(drawn, pairs_of(PairRule::kMatched, one.shown, one.clicks));
    loss_pairs(PairRule::kExpected, one.shown, one.clicks, drawn, loss);
    EXPECT_EQ(loss.pairs, pairs_of(PairRule::kAll, one.shown, one.clicks));
    EXPECT_EQ(loss.pairs.size(), one.pairs);
    EXPECT_DOUBLE_EQ(loss.weight, one.weight);
  }
}

TEST(LossPairsTest, OtherRulesUseDrawnPairs) {
  const Docs shown = {5, 1, 2, 3, 4, 0};
  const Clicks clicks = {0, 1, 0, 1, 1, 0};
  LossPairs loss;
  for (const PairRule rule : {PairRule::kAdjacent, PairRule::kMatched, PairRule::kAll}) {
    const Pairs drawn = pairs_of(rule, shown, clicks);
    loss_pairs(rule, shown, clicks, drawn, loss);
    EXPECT_EQ(loss.pairs, drawn);
    EXPECT_EQ(loss.weight, 1.0);
  }
}

TEST(PreferencePairsTest, MatchedPairsAreAFunctionOfTheStream) {
  const Docs shown = {4, 2, 9, 1, 5, 6};
  const Clicks clicks = {1, 0, 1, 0, 1, 0};
  int other = 0;
  for (std::uint32_t round = 1; round <= 50; ++round) {
    const Pairs pairs = pairs_of(PairRule::kMatched, shown, clicks, round);
    ASSERT_EQ(pairs_of(PairRule::kMatched, shown, clicks, round), pairs);
    other += pairs_of(PairRule::kMatched, shown, clicks, round + 1) != pairs ? 1 : 0;
  }
  EXPECT_GT(other, 0);
}

TEST(PreferencePairsTest, PairsDependOnPositionsNotDocuments) {
  // The same clicks on renamed documents give renamed pairs, under every rule.
  const Clicks clicks = {1, 0, 0, 1, 1, 0, 0, 0};
  const Docs shown = {0, 1, 2, 3, 4, 5, 6, 7};
  const Docs renamed = {12, 3, 40, 0, 7, 99, 1, 2};
  for (const PairRule rule : {PairRule::kAdjacent, PairRule::kMatched, PairRule::kAll}) {
    Pairs expected = pairs_of(rule, shown, clicks);
    ASSERT_FALSE(expected.empty());
    for (PreferencePair& pair : expected) {
      pair = {renamed[pair.winner], renamed[pair.loser]};
    }
    EXPECT_EQ(pairs_of(rule, renamed, clicks), expected);
  }
}

}  // namespace
}  // namespace olrank
