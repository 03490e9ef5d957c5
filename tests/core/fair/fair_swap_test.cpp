#include "core/fair/fair_swap.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/fair/fair_list.h"
#include "tests/core/fair/fair_world.h"

namespace olrank {
namespace {

constexpr DocGroup A = DocGroup::kA;
constexpr DocGroup B = DocGroup::kB;

PhiloxKey swap_key() {
  return make_key({.seed = 1, .purpose = Purpose::kTemplate});
}

/// "AABAB": place 0 is the leftmost letter.
TemplatePattern pattern(const std::string& letters) {
  TemplatePattern bits = 0;
  for (std::size_t place = 0; place < letters.size(); ++place)
    bits |= letters[place] == 'A' ? TemplatePattern{1} << place : 0;
  return bits;
}

TEST(ViolatedOrders, TransposesAnySize) {
  for (const std::int64_t docs : {0, 1, 2, 63, 64, 65, 130, 200}) {
    const FairWorld world = FairWorld::random(docs, 0.8, 0.5, static_cast<std::uint32_t>(docs));
    OrderBits columns;
    transpose(world.orders, columns);
    ASSERT_EQ(columns.docs(), docs);
    for (std::int64_t a = 0; a < docs; ++a) {
      for (std::int64_t b = 0; b < docs; ++b) ASSERT_EQ(columns.certain(b, a), world.orders.certain(a, b));
    }
  }
}

TEST(ViolatedOrders, CountsAsTheDefinitionSays) {
  std::vector<std::uint64_t> placed;
  for (std::uint32_t number = 0; number < 30; ++number) {
    const FairWorld world = FairWorld::random(70, 0.7, 0.5, number);
    std::vector<std::int32_t> list(70);
    std::iota(list.begin(), list.end(), 0);
    EXPECT_EQ(count_violated(world.orders, list, placed), 0);
    RngStream(swap_key(), number).shuffle(std::span(list));
    EXPECT_EQ(count_violated(world.orders, list, placed), slow_violated(world.orders, list));
  }
}

// Jia, PhD thesis, University of Virginia, 2022, Figure 3.1: x4 is fetched, x2 gets a block of its own.
TEST(FairSwap, FollowsTheWorkedExample) {
  const FairWorld world = FairWorld::of_blocks({2, 3}, {A, B, A, A, B});
  std::set<std::vector<std::int32_t>> lists;
  for (std::uint32_t round = 1; round <= 400; ++round) {
    FairSwap swap(swap_key());
    swap.prepare(world.blocks(), round);
    const std::int64_t violated = swap.swap(pattern("AABAB"), 5);
    std::vector<std::int32_t> list;
    swap.write_list(list);
    // The fetched document comes before x2, and before or after x1.
    EXPECT_EQ(violated, list.front() == 0 ? 1 : 2);
    lists.insert(list);
  }
  // {x1, x3 or x4}, {x2}, {x4 or x3, x5}: each in any order that keeps to the template.
  EXPECT_EQ(lists.size(), 4U);
  EXPECT_TRUE(lists.contains({3, 0, 1, 2, 4}));
}

TEST(FairSwap, ListsFollowTheirTemplateAndAreCountedRight) {
  for (std::uint32_t number = 0; number < 60; ++number) {
    const std::int64_t docs = 3 + number % 30;
    const FairWorld world = FairWorld::random(docs, 0.05 + 0.02 * number, 0.2 + 0.01 * number, number);
    FairSwap swap(swap_key());
    swap.prepare(world.blocks(number % 2 == 0), number);
    const int length = static_cast<int>(std::min<std::int64_t>(docs, 8));
    for (TemplatePattern wanted = 0; wanted < TemplatePattern{1} << length; ++wanted) {
      const std::int64_t of_a = TemplateTable::needed_of_a(wanted);
      ASSERT_EQ(swap.can_realise(wanted, length),
                of_a <= world.count_of(A) && length - of_a <= world.count_of(B));
      if (!swap.can_realise(wanted, length)) continue;
      const std::int64_t violated = swap.swap(wanted, length);
      std::vector<std::int32_t> list;
      swap.write_list(list);
      ASSERT_TRUE(is_permutation_of_places(list, docs));
      ASSERT_EQ(world.pattern_of(list, length), wanted);
      ASSERT_EQ(violated, slow_violated(world.orders, list));
    }
  }
}

TEST(FairSwap, KeepsBlocksWhereTheTemplateLetsIt) {
  const FairWorld world = FairWorld::of_blocks({2, 2, 3}, {A, B, A, B, A, B, A});
  FairSwap swap(swap_key());
  swap.prepare(world.blocks(), 1);
  for (const char* kept : {"ABABAAB", "BAABBAA", "ABBAABA"})
    EXPECT_EQ(swap.swap(pattern(kept), 7), 0) << kept;
}

TEST(FairSwap, InListsWithOrdersTakesDocumentsAsTheListDoes) {
  // One block, as place 1 is uncertain beside both others; place 0 is certainly before place 2.
  FairWorld world = FairWorld::of_blocks({3}, {B, A, A});
  world.orders.set(0, 2);
  world.list = {1, 0, 2};
  FairSwap swap(swap_key());
  swap.prepare(world.blocks(false), 1);
  EXPECT_EQ(swap.swap(pattern("AAB"), 3), 1);
  std::vector<std::int32_t> list;
  swap.write_list(list);
  EXPECT_EQ(list, (std::vector<std::int32_t>{1, 2, 0}));
  EXPECT_EQ(swap.swap(pattern("ABA"), 3), 0);
}

// χ² over the documents that can take the place; 11 degrees of freedom, false alarm below 1e-5.
TEST(FairSwap, FetchesAndPlacesUniformly) {
  const FairWorld world = FairWorld::of_blocks({2, 12}, {A, A, B, B, B, B, B, B, B, B, B, B, B, B});
  std::map<std::int32_t, int> fetched;
  std::map<std::int32_t, int> second;
  constexpr int kRounds = 6000;
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    FairSwap swap(swap_key());
    swap.prepare(world.blocks(), round);
    swap.swap(pattern("ABBA"), 4);
    ++fetched[swap.head()[1]];
    ++second[swap.head()[2]];
  }
  for (const auto& counts : {fetched, second}) {
    ASSERT_EQ(counts.size(), 12U);
    double chi = 0.0;
    for (const auto& [place, count] : counts)
      chi += (count - kRounds / 12.0) * (count - kRounds / 12.0) / (kRounds / 12.0);
    EXPECT_LT(chi, 45.1);
  }
}

/// The least violation of a template over all lists, by trying them.
std::int64_t exhaustive(const FairWorld& world, TemplatePattern wanted, int length) {
  std::vector<std::int32_t> list(world.by_score.size());
  std::iota(list.begin(), list.end(), 0);
  std::int64_t least = 1'000'000;
  do {
    if (world.pattern_of(list, length) == wanted)
      least = std::min(least, slow_violated(world.orders, list));
  } while (std::next_permutation(list.begin(), list.end()));
  return least;
}

TEST(ExactSearch, FindsWhatTryingAllListsFinds) {
  int better_than_swap = 0;
  for (std::uint32_t number = 0; number < 24; ++number) {
    const std::int64_t docs = 3 + number % 4;
    const FairWorld world = FairWorld::random(docs, 0.1 + 0.05 * number, 0.5, 100 + number);
    FairSwap swap(swap_key());
    swap.prepare(world.blocks(), number);
    ExactSearch exact(swap_key());
    const int length = static_cast<int>(std::min<std::int64_t>(docs, 5));
    for (TemplatePattern wanted = 0; wanted < TemplatePattern{1} << length; ++wanted) {
      if (!swap.can_realise(wanted, length)) continue;
      exact.prepare(world.orders, swap, number);
      const std::int64_t least = exhaustive(world, wanted, length);
      const auto found = exact.least_violated(wanted, length, 1000);
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(*found, least) << "query " << number << ", template " << wanted;
      if (least > 0) {
        EXPECT_FALSE(exact.least_violated(wanted, length, least - 1).has_value());
      }
      const std::int64_t greedy = swap.swap(wanted, length);
      EXPECT_GE(greedy, least);
      better_than_swap += greedy > least ? 1 : 0;
      std::vector<std::int32_t> list;
      ASSERT_TRUE(exact.draw_list(wanted, length, least, list));
      EXPECT_TRUE(is_permutation_of_places(list, docs));
      EXPECT_EQ(world.pattern_of(list, length), wanted);
      EXPECT_EQ(slow_violated(world.orders, list), least);
    }
  }
  EXPECT_GT(better_than_swap, 0) << "the claim that FairSwap is optimal would hold here";
}

}  // namespace
}  // namespace olrank
