#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/feedback/pair_history.h"
#include "core/random/rng_stream.h"
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

struct ListedPair {
  std::vector<double> difference;  // x_winner − x_loser
};

struct Played {
  Part part;
  PairHistory history;
  std::vector<ListedPair> listed;
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
      ListedPair listed;
      for (std::size_t k = 0; k < kFeatures; ++k) {
        listed.difference.push_back(double{query.features.doc(pair.winner)[k]} -
                                    double{query.features.doc(pair.loser)[k]});
      }
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
double slow_loss(const std::vector<ListedPair>& pairs, const std::vector<double>& theta,
                 std::vector<double>& gradient) {
  double loss = 0.0;
  gradient.assign(theta.size(), 0.0);
  for (const ListedPair& pair : pairs) {
    double z = 0.0;
    for (std::size_t k = 0; k < kFeatures; ++k) z += theta[k] * pair.difference[k];
    loss += std::log(1.0 + std::exp(-z));
    for (std::size_t k = 0; k < kFeatures; ++k) {
      gradient[k] -= pair.difference[k] / (1.0 + std::exp(z));
    }
  }
  return loss;
}

/// The same over folded rows: each won `first_wins` times out of `count`.
double folded_loss(const PairHistory& history, const std::vector<double>& theta,
                   std::vector<double>& gradient) {
  double loss = 0.0;
  gradient.assign(theta.size(), 0.0);
  for (std::size_t row = 0; row < history.count().size(); ++row) {
    const double* x = history.rows().data() + row * theta.size();
    double z = 0.0;
    for (std::size_t k = 0; k < theta.size(); ++k) z += theta[k] * x[k];
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
  // The same numbers of documents in another query are another pair.
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

/// The item of each unit, items side by side, written out.
std::vector<std::int64_t> units_of(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> units;
  for (std::size_t item = 0; item < counts.size(); ++item)
    units.insert(units.end(), counts[item], static_cast<std::int64_t>(item));
  return units;
}

void expect_units(const CountTree& tree, const std::vector<std::int64_t>& counts) {
  const std::vector<std::int64_t> units = units_of(counts);
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

}  // namespace
}  // namespace olrank
