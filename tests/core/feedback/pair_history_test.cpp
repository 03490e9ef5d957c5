#include "core/feedback/preference_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/random/rng_stream.h"
#include "tests/support/chi_square.h"
#include "tests/support/message_of.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

constexpr std::int64_t kFeatures = 11;
constexpr std::int64_t kPadding = 8;

/// Queries of documents with normal features, laid side by side as in a part.
struct Part {
  std::vector<std::int64_t> offsets{0};
  std::vector<float> values;

  Part(RngStream& coins, std::int64_t queries) {
    for (std::int64_t query = 0; query < queries; ++query) {
      const std::int64_t docs = 2 + coins.index(6);
      offsets.push_back(offsets.back() + docs);
      for (std::int64_t at = 0; at < docs * kFeatures; ++at) {
        values.push_back(static_cast<float>(coins.normal()));
      }
    }
  }
  QueryDocs query(std::int64_t number) const {
    const std::int64_t first = offsets[number];
    return {number,
            first,
            {values.data() + first * kFeatures, offsets[static_cast<std::size_t>(number) + 1] - first,
             kFeatures}};
  }
};

struct Played {
  Part part;
  PairHistory history;
  std::vector<std::vector<double>> listed;  // x_winner − x_loser
};

void play(Played& played, RngStream& coins, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const QueryDocs query =
        played.part.query(coins.index(static_cast<std::uint32_t>(played.part.offsets.size() - 1)));
    std::vector<PreferencePair> pairs(coins.index(4));
    for (PreferencePair& pair : pairs) {
      const auto docs = static_cast<std::uint32_t>(query.docs());
      pair.winner = static_cast<std::int32_t>(coins.index(docs));
      pair.loser = static_cast<std::int32_t>(
          (static_cast<std::uint32_t>(pair.winner) + 1 + coins.index(docs - 1)) % docs);
      std::vector<double> listed;
      for (std::size_t k = 0; k < kFeatures; ++k)
        listed.push_back(double{query.features.doc(pair.winner)[k]} -
                         double{query.features.doc(pair.loser)[k]});
      played.listed.push_back(listed);
    }
    played.history.add(query, pairs);
  }
}

Played make_played(std::uint32_t number, int rounds, RngStream& coins) {
  coins = RngStream(make_key({.seed = 33, .purpose = Purpose::kProbe}), number);
  Part part(coins, 6);
  Played played{std::move(part), PairHistory(kFeatures, kPadding), {}};
  play(played, coins, rounds);
  return played;
}

/// Loss and gradient pair by pair, each with its own winner: nothing folded.
double slow_loss(const std::vector<std::vector<double>>& pairs, const std::vector<double>& theta,
                 std::vector<double>& gradient) {
  double loss = 0.0;
  gradient.assign(theta.size(), 0.0);
  for (const std::vector<double>& pair : pairs) {
    const double z = std::inner_product(pair.begin(), pair.end(), theta.begin(), 0.0);
    loss += std::log(1.0 + std::exp(-z));
    for (std::size_t k = 0; k < kFeatures; ++k) {
      gradient[k] -= pair[k] / (1.0 + std::exp(z));
    }
  }
  return loss;
}

/// Finds loss and gradient over folded rows: each won `first_wins` times out of `count`.
double folded_loss(const PairHistory& history, const std::vector<double>& theta,
                   std::vector<double>& gradient) {
  double loss = 0.0;
  gradient.assign(theta.size(), 0.0);
  for (std::size_t row = 0; row < history.count().size(); ++row) {
    const double* x = history.rows().data() + row * theta.size();
    const double z = std::inner_product(theta.begin(), theta.end(), x, 0.0);
    const double wins = history.first_wins()[row];
    const double losses = history.count()[row] - wins;
    loss += wins * std::log(1.0 + std::exp(-z)) + losses * std::log(1.0 + std::exp(z));
    const double residual = losses / (1.0 + std::exp(-z)) - wins / (1.0 + std::exp(z));
    for (std::size_t k = 0; k < theta.size(); ++k) gradient[k] += residual * x[k];
  }
  return loss;
}

TEST(PairHistoryTest, FoldingKeepsLossAndGradient) {
  RngStream coins(make_key({}), 0);
  Played played = make_played(1, 0, coins);
  for (int step = 0; step < 40; ++step) {
    play(played, coins, 5);
    const auto observed = std::ssize(played.listed);
    ASSERT_EQ(played.history.observed(), observed);
    ASSERT_EQ(played.history.stride(), 16);
    double counted = 0.0;
    for (std::size_t row = 0; row < played.history.count().size(); ++row) {
      counted += played.history.count()[row];
      ASSERT_GE(played.history.count()[row], 1.0);
      ASSERT_GE(played.history.first_wins()[row], 0.0);
      ASSERT_LE(played.history.first_wins()[row], played.history.count()[row]);
      for (std::size_t k = kFeatures; k < 16; ++k) ASSERT_EQ(played.history.rows()[row * 16 + k], 0.0);
    }
    ASSERT_EQ(counted, static_cast<double>(observed));
    std::vector<double> theta(16, 0.0);
    for (std::size_t k = 0; k < kFeatures; ++k) theta[k] = 0.4 * coins.normal();
    std::vector<double> expected;
    const double loss = slow_loss(played.listed, theta, expected);
    std::vector<double> gradient;
    const double of_rows = folded_loss(played.history, theta, gradient);
    // Some hundred terms below 10, each exact to a few units of 10⁻¹⁶: 10⁻¹² leaves a factor of ten.
    ASSERT_TRUE(std::fabs(of_rows - loss) <= 1e-12 * (1.0 + loss));
    for (std::size_t k = 0; k < 16; ++k) {
      ASSERT_TRUE(std::fabs(gradient[k] - expected[k]) <= 1e-12 * static_cast<double>(10 + observed)) << k;
    }
  }
  // Six queries of at most seven documents have at most 126 pairs of documents.
  EXPECT_LE(played.history.row_count(), 126);
  EXPECT_GT(played.history.observed(), 2 * played.history.row_count());
}

TEST(PairHistoryTest, BothDirectionsShareARowWithinAQuery) {
  RngStream coins(make_key({.seed = 34, .purpose = Purpose::kProbe}), 0);
  const Part part(coins, 3);
  PairHistory history(kFeatures, kPadding);
  const auto add = [&](std::int64_t query, std::vector<PreferencePair> pairs) {
    history.add(part.query(query), pairs);
  };
  add(0, {{0, 1}});
  add(0, {{1, 0}, {1, 0}});
  EXPECT_EQ(history.row_count(), 1);
  EXPECT_EQ(history.count()[0], 3.0);
  // Whichever counts as first, the row points from second to first.
  const auto first = part.query(0).features.doc(0);
  const auto second = part.query(0).features.doc(1);
  const double sign = history.first_wins()[0] == 1.0 ? 1.0 : -1.0;
  EXPECT_TRUE(history.first_wins()[0] == 1.0 || history.first_wins()[0] == 2.0);
  for (std::size_t k = 0; k < kFeatures; ++k) {
    EXPECT_EQ(history.rows()[k], sign * (double{first[k]} - double{second[k]}));
  }
  // Documents with these numbers in another query are another pair.
  add(1, {{0, 1}});
  EXPECT_EQ(history.row_count(), 2);
  add(1, {});
  EXPECT_EQ(history.row_count(), 2);
  EXPECT_EQ(history.observed(), 4);
}

TEST(PairHistoryTest, DrawsEveryEarlierPairWithTheSameProbability) {
  RngStream coins(make_key({}), 0);
  Played played = make_played(4, 20, coins);
  while (played.history.latest().size() < 3) play(played, coins, 1);
  const PairHistory& history = played.history;
  std::vector<double> counts(history.count().begin(), history.count().end());
  for (const auto& pair : history.latest()) counts[pair.row] -= 1.0;
  std::vector<double> drawn(counts.size(), 0.0);
  constexpr std::uint32_t kDraws = 20000;
  const PhiloxKey key = make_key({.seed = 36, .purpose = Purpose::kReplay});
  for (std::uint32_t draw = 0; draw < kDraws; ++draw) {
    const std::int64_t row = history.draw_earlier(key, 7, draw);
    drawn[row] += 1.0;
    ASSERT_EQ(history.draw_earlier(key, 7, draw), row);
  }
  for (std::size_t row = 0; row < counts.size(); ++row) {
    const double share = counts[row] / static_cast<double>(history.earlier());
    // Seven deviations of a binomial: less than 10⁻¹¹ a row.
    const double deviation = std::sqrt(kDraws * share * (1.0 - share));
    ASSERT_TRUE(std::fabs(drawn[row] - kDraws * share) <= 7.0 * deviation) << row;
  }
}

TEST(PairHistoryTest, RefusesStateWithOtherFeatureCount) {
  RngStream coins(make_key({}), 0);
  const Played played = make_played(3, 10, coins);
  const std::string saved = state_of(played.history);
  PairHistory other(kFeatures + 1, 8);
  StateReader reader(saved, "there");
  EXPECT_EQ(message_of<IoError>([&] { other.load(reader); }),
            "there: The saved history has another number of features.");
}

void expect_units(const CountTree& tree, const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> units;  // the item of each unit, items side by side
  for (std::size_t item = 0; item < counts.size(); ++item)
    units.insert(units.end(), counts[item], static_cast<std::int64_t>(item));
  ASSERT_EQ(tree.items(), std::ssize(counts));
  ASSERT_EQ(tree.total(), std::ssize(units));
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    ASSERT_EQ(tree.item_at(static_cast<std::int64_t>(unit)), units[unit]) << unit;
}

TEST(CountTreeTest, FindsTheItemOfEveryUnitWhileCountsChange) {
  RngStream coins(make_key({.seed = 91, .purpose = Purpose::kProbe}), 0);
  CountTree tree;
  std::vector<std::int64_t> counts;
  for (int step = 0; step < 300; ++step) {
    if (counts.empty() || coins.index(3) == 0) {
      counts.push_back(coins.index(3));
      tree.append(counts.back());
    } else {
      const auto item = coins.index(static_cast<std::uint32_t>(counts.size()));
      const std::int64_t change = std::int64_t{coins.index(5)} - 2;
      if (counts[item] + change < 0) continue;
      counts[item] += change;
      tree.add(item, change);
    }
    expect_units(tree, counts);
  }
  EXPECT_GT(tree.total(), 100);
  tree.clear();
  expect_units(tree, {});
  tree.append(2);
  expect_units(tree, {2});
}

using Docs = std::vector<std::int32_t>;
using Clicks = std::vector<std::uint8_t>;
using Pairs = std::vector<PreferencePair>;

const PhiloxKey kBatchKey = make_key({.seed = 9, .purpose = Purpose::kBatch, .fold = 1});

LossPairs loss_of(const PairSettings& settings, const Docs& shown, const Clicks& clicks,
                  std::span<const double> rewards = {}, std::uint32_t round = 1) {
  const Feedback feedback{round, {}, shown, clicks, rewards};
  Pairs drawn;
  preference_pairs(settings, shown, clicks, RngStream(kBatchKey, round), drawn);
  LossPairs loss{{{7, 7}}, 7.0};  // what was there before goes
  loss_pairs(settings, feedback, kBatchKey, drawn, loss);
  return loss;
}

Pairs pairs_of(PairRule rule, const Docs& shown, const Clicks& clicks, std::uint32_t round = 1) {
  Pairs pairs = {{7, 7}};  // what was there before goes
  preference_pairs({.pairs = rule, .debias = {}}, shown, clicks, RngStream(kBatchKey, round), pairs);
  return pairs;
}

TEST(ExaminedDocumentsTest, EndSoManyPastTheLastClick) {
  const struct {
    Clicks clicks;
    std::int64_t after;
    std::int64_t examined;
  } cases[] = {{{}, 1, 0},
               {{0}, 1, 0},
               {{1}, 1, 1},
               {{0, 0, 0}, 1, 0},
               {{1, 0, 0}, 1, 2},
               {{0, 1, 0, 0}, 1, 3},
               {{0, 0, 1}, 1, 3},
               {{1, 0, 1, 0, 0}, 1, 4},
               {{1, 1, 1}, 1, 3},
               {{0, 0, 0}, 3, 0},
               {{0, 1}, 2, 2},
               {{0, 1, 0, 0, 0}, 0, 2},
               {{0, 1, 0, 0, 0}, 2, 4},
               {{0, 1, 0, 0, 0}, 9, 5}};
  for (const auto& one : cases) EXPECT_EQ(examined_documents(one.clicks, one.after), one.examined);
  EXPECT_EQ(examined_documents(Clicks{1, 0, 0}), 2);
}

TEST(PreferencePairsTest, LosersAreThoseBehindTheLastClickThatCountAsExamined) {
  const auto losers = [](PairRule rule, std::int64_t after) {
    PairSettings settings{.pairs = rule, .debias = {}, .examined_after = after};
    Docs found;
    for (const auto& [winner, loser] : loss_of(settings, {4, 2, 9, 7}, {1, 0, 0, 0}).pairs)
      found.push_back(loser);
    return found;
  };
  for (const PairRule rule : {PairRule::kAll, PairRule::kExpected}) {
    EXPECT_EQ(losers(rule, 0), Docs{});
    EXPECT_EQ(losers(rule, 1), Docs{2});
    EXPECT_EQ(losers(rule, 2), (Docs{2, 9}));
    EXPECT_EQ(losers(rule, 5), (Docs{2, 9, 7}));
  }
  EXPECT_EQ(losers(PairRule::kAdjacent, 0), Docs{});
  EXPECT_EQ(losers(PairRule::kAdjacent, 3), Docs{2});
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

/// χ² of 30,000 rounds over all sets of pairs, each of the same probability.
void expect_uniform_matching(const Docs& shown, const Clicks& clicks, std::size_t matchings) {
  std::map<std::vector<std::pair<std::int32_t, std::int32_t>>, std::int64_t> seen;
  for (std::uint32_t round = 1; round <= 30'000; ++round) {
    std::vector<std::pair<std::int32_t, std::int32_t>> matching;
    for (const auto& [winner, loser] : pairs_of(PairRule::kMatched, shown, clicks, round))
      matching.emplace_back(winner, loser);
    std::sort(matching.begin(), matching.end());
    ++seen[matching];
  }
  ASSERT_EQ(seen.size(), matchings);
  std::vector<std::int64_t> counts;
  const Pairs all = pairs_of(PairRule::kAll, shown, clicks);
  for (const auto& [matching, count] : seen) {
    counts.push_back(count);
    std::set<std::int32_t> docs;
    for (const auto& [winner, loser] : matching) {
      EXPECT_EQ(std::count(all.begin(), all.end(), PreferencePair{winner, loser}), 1);
      docs.insert({winner, loser});
    }
    EXPECT_EQ(docs.size(), 2 * matching.size()) << "no document twice";
  }
  EXPECT_TRUE(counts_are_even(counts, kTail));
}

TEST(PreferencePairsTest, MatchedPairsAreAUniformMatching) {
  expect_uniform_matching({0, 1, 2, 3, 4, 5}, {1, 0, 1, 0, 1, 0}, 6);      // 3 with 3: 3!
  expect_uniform_matching({5, 1, 2, 3, 4, 0}, {0, 0, 0, 1, 1, 0}, 4 * 3);  // 2 with 2 of 4
  expect_uniform_matching({5, 1, 2, 3, 4, 0}, {1, 1, 0, 1, 1, 1}, 5);      // any of 5 with 1
  expect_uniform_matching({4, 2, 9, 1, 5, 6}, {0, 1, 1, 0, 0, 0}, 2);      // 5 and 6 are not examined
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
  for (const auto& one : cases) {
    const Pairs drawn = pairs_of(PairRule::kExpected, one.shown, one.clicks);
    EXPECT_EQ(drawn, pairs_of(PairRule::kMatched, one.shown, one.clicks));
    const LossPairs loss = loss_of({PairRule::kExpected, {}}, one.shown, one.clicks);
    EXPECT_EQ(loss.pairs, pairs_of(PairRule::kAll, one.shown, one.clicks));
    EXPECT_EQ(loss.pairs.size(), one.pairs);
    EXPECT_DOUBLE_EQ(loss.weight, one.weight);
  }
}

TEST(LossPairsTest, OtherRulesUseDrawnPairs) {
  const Docs shown = {5, 1, 2, 3, 4, 0};
  const Clicks clicks = {0, 1, 0, 1, 1, 0};
  for (const PairRule rule : {PairRule::kAdjacent, PairRule::kMatched, PairRule::kAll}) {
    const LossPairs loss = loss_of({rule, {}}, shown, clicks);
    EXPECT_EQ(loss.pairs, pairs_of(rule, shown, clicks));
    EXPECT_EQ(loss.weight, 1.0);
  }
}

TEST(ClickWeightTest, IsTheRewardByTheProbabilityOfExamination) {
  const Docs shown = {5, 1, 2, 3};
  const Clicks clicks = {1, 1, 1, 1};
  const std::vector<double> rewards = {1.0, 10.0, 0.25, 1e6};
  const std::vector<double> debias = {1.0, 0.5, 0.01};
  const Feedback clicked{1, {}, shown, clicks};
  const Feedback rewarded{1, {}, shown, clicks, rewards};
  const double of_clicks[] = {1.0, 2.0, 10.0, 10.0};  // at most 10, and the last one for all ranks below
  const double of_both[] = {1.0, 20.0, 2.5, 1000.0};  // at most 1000
  for (std::size_t rank = 0; rank < shown.size(); ++rank) {
    EXPECT_EQ(click_weight(clicked, {}, rank), 1.0);
    EXPECT_EQ(click_weight(rewarded, {}, rank), std::min(rewards[rank], 1000.0));
    EXPECT_EQ(click_weight(clicked, debias, rank), of_clicks[rank]);
    EXPECT_EQ(click_weight(rewarded, debias, rank), of_both[rank]);
  }
}

TEST(RepeatPairsTest, WholeWeightsRepeatTheWinnersPairs) {
  const Docs shown = {4, 2, 9, 1};
  const Clicks clicks = {0, 1, 1, 0};
  const std::vector<double> rewards = {0.0, 3.0, 2.0, 0.0};
  EXPECT_EQ(loss_of({PairRule::kAll, {}}, shown, clicks, rewards).pairs,
            (Pairs{{2, 4}, {2, 4}, {2, 4}, {2, 1}, {2, 1}, {2, 1}, {9, 4}, {9, 4}, {9, 1}, {9, 1}}));
  EXPECT_EQ(loss_of({PairRule::kAdjacent, {}}, shown, clicks, rewards).pairs,
            (Pairs{{2, 4}, {2, 4}, {2, 4}, {9, 1}, {9, 1}}));
  EXPECT_EQ(loss_of({PairRule::kAdjacent, {1.0, 1.0, 0.25}}, shown, clicks).pairs,
            (Pairs{{2, 4}, {9, 1}, {9, 1}, {9, 1}, {9, 1}}));
  // The mean over all matchings keeps its weight: 1/2 here.
  const LossPairs expected = loss_of({PairRule::kExpected, {}}, shown, clicks, rewards);
  EXPECT_EQ(expected.pairs, loss_of({PairRule::kAll, {}}, shown, clicks, rewards).pairs);
  EXPECT_EQ(expected.weight, 0.5);
  const std::vector<double> nothing(4, 0.0);
  EXPECT_EQ(loss_of({PairRule::kAll, {}}, shown, clicks, nothing).pairs, Pairs{});
}

/// Counts which of 40,000 rounds have one copy more than ⌊w⌋: χ² with a false-alarm rate of 1e-10 each.
TEST(RepeatPairsTest, TheMeanNumberOfCopiesIsTheWeight) {
  constexpr std::int64_t kRounds = 40'000;
  const Docs shown = {4, 2, 9};
  const Clicks clicks = {1, 0, 1};
  for (const double weight : {0.05, 0.5, 1.3, 7.9}) {
    const std::vector<double> rewards = {weight, 0.0, weight};
    const auto whole = static_cast<std::int64_t>(weight);
    const double rest = weight - static_cast<double>(whole);
    std::vector<std::int64_t> seen(4);  // neither, the first, the second, both have one more
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
      const LossPairs loss = loss_of({PairRule::kAll, {}}, shown, clicks, rewards, round);
      const auto more_of = [&](std::int32_t winner) {
        const auto copies = std::count(loss.pairs.begin(), loss.pairs.end(), PreferencePair{winner, 2});
        EXPECT_TRUE(copies == whole || copies == whole + 1) << copies;
        return static_cast<std::size_t>(copies - whole);
      };
      ++seen[more_of(4) + 2 * more_of(9)];
    }
    const ChiSquare chi = chi_square(seen, std::vector{(1.0 - rest) * (1.0 - rest), rest * (1.0 - rest),
                                                       rest * (1.0 - rest), rest * rest});
    EXPECT_TRUE(chi.statistic <= chi.bound(kTail)) << weight << ": " << chi.statistic;
  }
}

}  // namespace
}  // namespace olrank
