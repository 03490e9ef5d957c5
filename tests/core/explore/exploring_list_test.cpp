#include "core/explore/exploring_list.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "core/explore/certain_orders.h"
#include "tests/core/explore/slow_orders.h"
#include "tests/support/chi_square.h"

namespace olrank {
namespace {

using Docs = std::vector<std::int32_t>;

RngStream list_coins(std::uint32_t number) {
  return RngStream(make_key({.seed = 32, .purpose = Purpose::kProbe}), number);
}

const PhiloxKey kListKey = make_key({.seed = 5, .purpose = Purpose::kList, .fold = 1});

Docs random_order(RngStream& coins, std::size_t docs) {
  Docs order = first_places(docs);
  coins.shuffle(std::span(order));
  return order;
}

Docs list_of(ExploringList& maker, const Docs& by_score, const OrderTable& table, std::uint32_t round,
             std::int64_t cutoff = 10) {
  OrderBits orders = bits_of(table);
  const RankedList list = maker.make(by_score, orders, round, cutoff);
  return Docs(list.docs.begin(), list.docs.end());
}

std::vector<Docs> fast_blocks(const OrderTable& table) {
  std::vector<std::int32_t> ends;
  find_blocks(bits_of(table), ends);
  std::vector<Docs> blocks;
  std::int32_t begin = 0;
  for (const std::int32_t end : ends) {
    Docs block(static_cast<std::size_t>(end - begin));
    std::iota(block.begin(), block.end(), begin);
    blocks.push_back(block);
    begin = end;
  }
  return blocks;
}

/// As PairRank makes them: scores with ties, and widths of any kind.
OrderTable table_by_width(RngStream& coins, std::size_t docs, double alpha) {
  std::vector<float> scores(docs);
  const bool ties = coins.index(2) == 0;
  for (float& score : scores) {
    score = static_cast<float>(ties ? 0.25 * static_cast<double>(coins.index(8)) : coins.normal());
  }
  std::sort(scores.begin(), scores.end(), std::greater<>());
  std::vector<double> width_sq(docs * docs, 0.0);
  for (std::size_t i = 0; i < docs; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double width = coins.uniform() * coins.uniform();
      width_sq[i * docs + j] = width_sq[j * docs + i] = width * width;
    }
  }
  OrderBits orders;
  certain_by_width({alpha, 0.0}, scores, first_places(docs), width_sq, orders);
  return table_of(orders);
}

TEST(BlocksTest, MatchTheGraphConstruction) {
  std::int64_t in_between = 0;  // neither one block nor all documents alone
  std::int64_t joined = 0;      // where a cycle between components mattered
  for (std::uint32_t number = 0; number < 3000; ++number) {
    RngStream coins = list_coins(number);
    constexpr std::size_t kEdges[] = {0, 1, 63, 64, 65, 127, 128, 129, 130};
    const std::size_t docs =
        number % 50 < 2 ? kEdges[number / 50 % 9] : 1 + coins.index(number % 4 == 0 ? 80 : 20);
    constexpr double kAlphas[] = {0.0, 0.01, 0.05, 0.1, 0.3, 1.0};
    constexpr double kShares[] = {0.5, 0.9, 0.98, 0.998};
    OrderTable table = number % 2 == 0 ? table_by_width(coins, docs, kAlphas[coins.index(6)])
                                       : random_table(coins, docs, kShares[coins.index(4)]);
    for (const bool refine : {false, true}) {
      if (refine) table = slow_closure(table);
      const std::vector<Docs> expected = slow_blocks(table);
      ASSERT_EQ(fast_blocks(table), expected) << number << (refine ? ", refined" : "");
      in_between += expected.size() > 1 && expected.size() < docs ? 1 : 0;
      // Two neighbours of a block that are certain, and yet not apart.
      joined += std::count_if(expected.begin(), expected.end(), [&](const Docs& block) {
        return block.size() == 3 && table[block[0]][block[1]] && table[block[1]][block[2]];
      });
      ExploringList maker(ListRule::kBlocks, refine, kListKey);
      OrderBits orders = bits_of(table);
      ASSERT_EQ(maker.make(first_places(docs), orders, 1, 10).certainty->blocks, std::ssize(expected));
    }
  }
  EXPECT_GT(in_between, 1000);
  EXPECT_GT(joined, 20);
}

TEST(ExploringListTest, CertainListsRespectEveryCertainOrder) {
  ExploringList maker(ListRule::kCertain, false, kListKey);
  ExploringList refining(ListRule::kCertain, true, kListKey);
  for (std::uint32_t number = 0; number < 400; ++number) {
    RngStream coins = list_coins(10'000 + number);
    constexpr std::size_t kEdges[] = {0, 1, 63, 64, 65, 130};
    const std::size_t docs = number < 60 ? kEdges[number % 6] : coins.index(81);
    constexpr double kShares[] = {0.0, 0.03, 0.3, 0.9, 1.0};
    const OrderTable table = random_table(coins, docs, kShares[coins.index(5)]);
    const Docs by_score = random_order(coins, docs);
    const Docs list = list_of(maker, by_score, table, number + 1);
    Docs sorted = list;
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(sorted, first_places(docs)) << number;
    std::vector<std::size_t> rank(docs);
    for (std::size_t at = 0; at < docs; ++at) rank[list[at]] = at;
    for (std::size_t a = 0; a < docs; ++a) {
      for (std::size_t b = a + 1; b < docs; ++b) {
        if (!table[a][b]) continue;
        ASSERT_LT(rank[by_score[a]], rank[by_score[b]]);
      }
    }
    // A linear extension respects the closure anyway, so refining changes no coin and no list.
    ASSERT_EQ(list_of(refining, by_score, table, number + 1), list) << number;
  }
}

/// Every list that the rule can make of places [0, docs), with its probability: at each rank, each of the
/// places that nothing unplaced stands before with the same one. `blocks` confines ranks to blocks.
void expand(const OrderTable& table, const std::vector<Docs>& blocks, Docs& begun, double probability,
            std::map<Docs, double>& lists) {
  const auto block = std::ranges::find_if(blocks, [&](const Docs& one) {
    return one.back() >= std::ssize(begun);  // places before it are taken
  });
  if (block == blocks.end()) {
    lists[begun] += probability;
    return;
  }
  std::vector<bool> taken(table.size());
  for (const std::int32_t place : begun) taken[place] = true;
  const Docs available = slow_available(table, taken, block->front(), block->back() + 1);
  for (const std::int32_t place : available) {
    begun.push_back(place);
    expand(table, blocks, begun, probability / static_cast<double>(available.size()), lists);
    begun.pop_back();
  }
}

/// χ² of 60,000 lists against the exact law, which lists every possible one: false alarms under 1e-10.
void expect_law(ListRule rule, const OrderTable& table, const std::vector<Docs>& blocks,
                std::size_t expected_lists) {
  std::map<Docs, double> law;
  Docs begun;
  const OrderTable none(table.size(), std::vector<bool>(table.size(), false));
  expand(rule == ListRule::kBlocks ? none : table, blocks, begun, 1.0, law);
  ASSERT_EQ(law.size(), expected_lists);
  // An order by score that is not the order of documents, so that places and documents differ.
  Docs by_score(table.size());
  for (std::size_t place = 0; place < by_score.size(); ++place) {
    by_score[place] = static_cast<std::int32_t>((place * 3 + 1) % table.size());
  }
  std::map<Docs, std::int64_t> seen;
  ExploringList maker(rule, false, kListKey);
  for (std::uint32_t round = 1; round <= 60'000; ++round) ++seen[list_of(maker, by_score, table, round)];
  std::vector<std::int64_t> counts;
  std::vector<double> probabilities;
  std::int64_t possible = 0;
  for (const auto& [places, probability] : law) {
    Docs list;
    for (const std::int32_t place : places) list.push_back(by_score[place]);
    counts.push_back(seen[list]);
    probabilities.push_back(probability);
    possible += counts.back();
    EXPECT_GT(counts.back(), 0);  // the rarest law below expects hundreds
  }
  EXPECT_EQ(possible, 60'000);
  const ChiSquare chi = chi_square(counts, probabilities);
  EXPECT_EQ(chi.degrees, static_cast<int>(expected_lists) - 1);
  EXPECT_TRUE(chi.statistic <= chi.bound(kTail)) << chi.statistic;
}

TEST(ExploringListTest, CertainListsDrawUniformlyAtEachRank) {
  // 0 → 2, 1 → 2, 1 → 3: with 4 free there are 5 · 5 linear extensions, of different probabilities.
  OrderTable table(5, std::vector<bool>(5, false));
  table[0][2] = table[1][2] = table[1][3] = true;
  expect_law(ListRule::kCertain, table, {{0, 1, 2, 3, 4}}, 25);
  // None certain: all 120 orders. All certain: one.
  expect_law(ListRule::kCertain, OrderTable(5, std::vector<bool>(5, false)), {{0, 1, 2, 3, 4}}, 120);
  expect_law(ListRule::kCertain, OrderTable(5, std::vector<bool>(5, true)), {{0, 1, 2, 3, 4}}, 1);
}

/// Seven places in blocks {0}, {1, 2, 3, 4}, {5, 6}; inside the large one 1 is certainly before 3 and 4.
OrderTable three_blocks() {
  OrderTable table(7, std::vector<bool>(7, false));
  for (std::size_t a = 0; a < 7; ++a) {
    for (std::size_t b = a + 1; b < 7; ++b) {
      const auto block = [](std::size_t place) { return place == 0 ? 0 : place < 5 ? 1 : 2; };
      table[a][b] = block(a) != block(b);
    }
  }
  table[1][3] = table[1][4] = true;
  return table;
}

TEST(ExploringListTest, BlocksAreShuffledUniformlyWithinThemselves) {
  ASSERT_EQ(slow_blocks(three_blocks()), (std::vector<Docs>{{0}, {1, 2, 3, 4}, {5, 6}}));
  expect_law(ListRule::kBlocks, three_blocks(), {{0}, {1, 2, 3, 4}, {5, 6}}, 24 * 2);
}

TEST(ExploringListTest, BlocksCertainIsTopologicalWithinBlocks) {
  // 1 before 3 and 4, 2 anywhere: 2 orders of (3, 4) times 4 places of 2.
  expect_law(ListRule::kBlocksCertain, three_blocks(), {{0}, {1, 2, 3, 4}, {5, 6}}, 8 * 2);
}

TEST(ExploringListTest, CertaintyMatchesCounting) {
  std::int64_t some_certain = 0;
  for (const ListRule rule :
       {ListRule::kCertain, ListRule::kBlocks, ListRule::kBlocksCertain, ListRule::kGreedy}) {
    ExploringList maker(rule, false, kListKey);
    for (std::uint32_t number = 0; number < 300; ++number) {
      RngStream coins = list_coins(30'000 + number);
      const std::size_t docs = coins.index(number % 10 == 0 ? 140 : 40);
      constexpr double kShares[] = {0.1, 0.8, 0.95, 0.99};
      const OrderTable table = random_table(coins, docs, kShares[coins.index(4)]);
      const Docs by_score = random_order(coins, docs);
      const auto cutoff = static_cast<std::int64_t>(1 + coins.index(12));
      OrderBits orders = bits_of(table);
      const RankedList made = maker.make(by_score, orders, number + 1, cutoff);
      ASSERT_TRUE(made.certainty.has_value());
      if (rule == ListRule::kGreedy) {
        ASSERT_EQ(Docs(made.docs.begin(), made.docs.end()), by_score);
      }
      const ListCertainty& certainty = *made.certainty;
      const std::vector<Docs> blocks = slow_blocks(table);
      std::vector<std::size_t> place(docs);
      for (std::size_t at = 0; at < docs; ++at) place[by_score[at]] = at;
      std::int64_t pairs = 0;
      std::int64_t certain = 0;
      const std::size_t shown = std::min(docs, static_cast<std::size_t>(cutoff));
      for (std::size_t i = 0; i < shown; ++i) {
        for (std::size_t j = i + 1; j < shown; ++j) {
          const std::size_t a = place[made.docs[i]];
          const std::size_t b = place[made.docs[j]];
          ++pairs;
          certain += table[a][b] || table[b][a] ? 1 : 0;
        }
      }
      ASSERT_EQ(certainty.shown_pairs, pairs);
      ASSERT_EQ(certainty.certain_pairs, certain);
      ASSERT_EQ(certainty.blocks, std::ssize(blocks));
      for (std::size_t i = 0; i < ListCertainty::kBlockRanks.size(); ++i) {
        const auto rank = static_cast<std::size_t>(ListCertainty::kBlockRanks[i]) - 1;
        std::int64_t size = 0;
        for (const Docs& block : blocks) {
          if (rank >= docs) break;
          // The block of the document that stands at this rank of the list.
          const auto at = static_cast<std::int32_t>(place[made.docs[rank]]);
          if (std::ranges::find(block, at) != block.end()) size = std::ssize(block);
        }
        ASSERT_EQ(certainty.block_size[i], size) << "rank " << rank << " of " << docs;
      }
      some_certain += certain > 0 && certain < pairs ? 1 : 0;
    }
  }
  EXPECT_GT(some_certain, 300);
}

TEST(ExploringListTest, RefiningTakesTheClosureBeforeFormingBlocks) {
  // 0 → 1 → 2 without 0 → 2: one block as it stands, three when closed.
  OrderTable table(3, std::vector<bool>(3, false));
  table[0][1] = table[1][2] = true;
  for (const bool refine : {false, true}) {
    ExploringList maker(ListRule::kBlocks, refine, kListKey);
    OrderBits orders = bits_of(table);
    const RankedList list = maker.make(Docs{2, 0, 1}, orders, 1, 10);
    EXPECT_EQ(list.certainty->blocks, refine ? 3 : 1);
    EXPECT_EQ(list.certainty->certain_pairs, 2);  // what the closure adds is implied, and not counted
    EXPECT_EQ(list.certainty->block_size[0], refine ? 1 : 3);
    if (refine) {
      EXPECT_EQ(Docs(list.docs.begin(), list.docs.end()), (Docs{2, 0, 1}));
    }
  }
}

TEST(ExploringListTest, ShuffleDrawsAreKeyedByDocument) {
  // Whatever two rankers score and are sure of, two documents that share a block in both keep their order.
  std::int64_t compared = 0;
  ExploringList one(ListRule::kBlocks, false, kListKey);
  ExploringList other(ListRule::kBlocks, false, kListKey);
  for (std::uint32_t number = 0; number < 200; ++number) {
    RngStream coins = list_coins(40'000 + number);
    const std::size_t docs = 2 + coins.index(30);
    struct Ranked {
      Docs by_score;
      std::vector<std::size_t> rank;
      std::vector<std::size_t> block;
    } rankers[2];
    for (int which = 0; which < 2; ++which) {
      Ranked& ranker = rankers[which];
      ranker.by_score = random_order(coins, docs);
      const OrderTable table = random_table(coins, docs, which == 0 ? 0.95 : 0.9);
      const Docs list = list_of(which == 0 ? one : other, ranker.by_score, table, number + 1);
      ranker.rank.resize(docs);
      ranker.block.resize(docs);
      for (std::size_t at = 0; at < docs; ++at) ranker.rank[list[at]] = at;
      const std::vector<Docs> blocks = slow_blocks(table);
      for (std::size_t block = 0; block < blocks.size(); ++block) {
        for (const std::int32_t place : blocks[block]) {
          ranker.block[ranker.by_score[place]] = block;
        }
      }
    }
    for (std::size_t i = 0; i < docs; ++i) {
      for (std::size_t j = i + 1; j < docs; ++j) {
        if (rankers[0].block[i] != rankers[0].block[j] || rankers[1].block[i] != rankers[1].block[j])
          continue;
        ASSERT_EQ(rankers[0].rank[i] < rankers[0].rank[j], rankers[1].rank[i] < rankers[1].rank[j]);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

TEST(ExploringListTest, TopologicalDrawsAreKeyedByRank) {
  // Equal orders of other documents give the same places.
  ExploringList maker(ListRule::kCertain, false, kListKey);
  for (std::uint32_t number = 0; number < 100; ++number) {
    RngStream coins = list_coins(50'000 + number);
    const std::size_t docs = 1 + coins.index(70);
    const OrderTable table = random_table(coins, docs, 0.1);
    const Docs places = list_of(maker, first_places(docs), table, number + 1);
    const Docs by_score = random_order(coins, docs);
    Docs expected;
    for (const std::int32_t place : places) expected.push_back(by_score[place]);
    ASSERT_EQ(list_of(maker, by_score, table, number + 1), expected);
  }
}

TEST(ExploringListTest, AListDependsOnlyOnItsRoundAndKey) {
  for (const ListRule rule : {ListRule::kCertain, ListRule::kBlocks, ListRule::kBlocksCertain}) {
    ExploringList used(rule, false, kListKey);
    ExploringList foreign(rule, false, make_key({.seed = 6, .purpose = Purpose::kList, .fold = 1}));
    int same_round = 0;
    int same_key = 0;
    for (std::uint32_t number = 0; number < 100; ++number) {
      RngStream coins = list_coins(60'000 + number);
      const std::size_t docs = 20 + coins.index(110);
      const OrderTable table = random_table(coins, docs, 0.2);
      const Docs by_score = random_order(coins, docs);
      ExploringList fresh(rule, false, kListKey);
      const Docs list = list_of(fresh, by_score, table, number + 1);
      ASSERT_EQ(list_of(used, by_score, table, number + 1), list);
      same_round += list_of(used, by_score, table, number + 2) == list ? 1 : 0;
      same_key += list_of(foreign, by_score, table, number + 1) == list ? 1 : 0;
    }
    // Twenty documents with a fifth of the orders certain have far more than 10⁶ lists.
    EXPECT_EQ(same_round, 0);
    EXPECT_EQ(same_key, 0);
  }
}

}  // namespace
}  // namespace olrank
