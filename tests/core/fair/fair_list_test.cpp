#include "core/fair/fair_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/explore/exploring_list.h"
#include "core/fair/fair_swap.h"
#include "core/fair/many_groups.h"
#include "core/random/rng_stream.h"
#include "tests/core/explore/slow_orders.h"
#include "tests/support/chi_square.h"

namespace olrank {
namespace {

constexpr DocGroup A = DocGroup::kA;
constexpr DocGroup B = DocGroup::kB;

/// A query with random scores, widths and groups.
struct FairWorld {
  std::vector<std::int32_t> by_score;
  std::vector<std::int32_t> ends;
  OrderBits orders;
  std::vector<DocGroup> groups;

  std::vector<std::int32_t> list;  // places in order

  GroupedBlocks blocks(bool uniform = true) const {
    return {by_score, ends, &orders, groups, list, uniform};
  }

  /// An order is certain where scores differ by more than a width, drawn in [0, `width`) for each pair.
  static FairWorld random(std::int64_t docs, double width, double share_of_a, std::uint32_t number) {
    RngStream random(make_key({.seed = 30, .purpose = Purpose::kProbe}), number);
    FairWorld world;
    std::vector<double> scores(docs);
    for (double& score : scores) score = random.uniform();
    world.by_score = first_places(docs);
    std::sort(world.by_score.begin(), world.by_score.end(),
              [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
    world.orders.reset(docs);
    for (std::int64_t a = 0; a < docs; ++a) {
      for (std::int64_t b = a + 1; b < docs; ++b) {
        const double difference = scores[world.by_score[a]] - scores[world.by_score[b]];
        if (difference > width * random.uniform()) world.orders.set(a, b);
      }
    }
    find_blocks(world.orders, world.ends);
    world.list = first_places(docs);
    for (std::int64_t doc = 0; doc < docs; ++doc)
      world.groups.push_back(random.uniform() < share_of_a ? A : B);
    return world;
  }

  /// The certain orders are those between blocks of these sizes.
  static FairWorld of_blocks(const std::vector<std::int64_t>& sizes, std::vector<DocGroup> groups) {
    FairWorld world;
    const auto docs = std::ssize(groups);
    world.groups = std::move(groups);
    world.by_score = world.list = first_places(docs);
    world.orders.reset(docs);
    std::int64_t end = 0;
    for (const std::int64_t size : sizes) {
      for (std::int64_t a = end; a < end + size; ++a) {
        for (std::int64_t b = end + size; b < docs; ++b) world.orders.set(a, b);
      }
      end += size;
      world.ends.push_back(static_cast<std::int32_t>(end));
    }
    return world;
  }

  std::int64_t count_of(DocGroup group) const { return std::count(groups.begin(), groups.end(), group); }
  TemplatePattern pattern_of(const std::vector<std::int32_t>& list, int length) const {
    TemplatePattern pattern = 0;
    for (int place = 0; place < length; ++place) {
      if (groups[by_score[list[place]]] == DocGroup::kA) pattern |= TemplatePattern{1} << place;
    }
    return pattern;
  }
};

const PhiloxKey kChoiceKey = make_key({.seed = 2, .purpose = Purpose::kTemplate});
const PhiloxKey kSwapKey = make_key({.seed = 1, .purpose = Purpose::kTemplate});

inline ExposureRule rule_of(int places, const std::vector<double>& beta, double epsilon) {
  ExposureRule rule{{}, beta, epsilon};
  for (int rank = 1; rank <= places; ++rank) rule.examination.push_back(1.0 / std::sqrt(rank));
  return rule;
}

/// The obvious count of (i, j) with i certainly before j and j ranked before i.
inline std::int64_t slow_violated(const OrderBits& orders, const std::vector<std::int32_t>& list) {
  std::int64_t violated = 0;
  for (std::size_t first = 0; first < list.size(); ++first) {
    for (std::size_t second = first + 1; second < list.size(); ++second)
      violated += list[second] < list[first] && orders.certain(list[second], list[first]) ? 1 : 0;
  }
  return violated;
}

inline bool is_permutation_of_places(std::vector<std::int32_t> list, std::int64_t docs) {
  std::sort(list.begin(), list.end());
  return list == first_places(docs);
}

TEST(ExposureLedger, CountsWhatWasExamined) {
  const ExposureRule rule = rule_of(3, {2.0}, 1.0);
  ExposureLedger ledger;
  ledger.observe_examined(rule, std::vector{B, A}, std::vector<std::int32_t>{1, 0},
                          std::vector<std::uint8_t>{1, 1});
  EXPECT_EQ(ledger.unfairness()[0], -1.0);
  EXPECT_EQ(ledger.fair_rounds(), 1);
  ledger.observe_examined(rule, std::vector{B, A}, std::vector<std::int32_t>{0, 1},
                          std::vector<std::uint8_t>{1, 0});
  EXPECT_EQ(ledger.unfairness()[0], -3.0);
  EXPECT_EQ(ledger.of(DocGroup::kB), 2.0);
  EXPECT_EQ(ledger.of(DocGroup::kA), 1.0);
  EXPECT_EQ(ledger.fair_rounds(), 1);
  EXPECT_EQ(ledger.rounds(), 2);
}

TEST(FairList, WithoutATemplateWithinEpsilonTakesTheClosest) {
  const FairWorld world = FairWorld::of_blocks({2, 2}, std::vector<DocGroup>(4, DocGroup::kA));
  const ExposureRule rule = rule_of(3, {1.0}, 0.25);
  FairList lists(TemplateSearch::kFairSwap, kChoiceKey);
  std::vector<std::int32_t> list;
  const auto choice = lists.make(world.blocks(), {world.groups, &rule, {}}, 1, 3, list);
  EXPECT_FALSE(choice.realisable);
  EXPECT_EQ(choice.pattern, 0b111U);
  EXPECT_EQ(choice.templates, 1);
  EXPECT_EQ(choice.violated, 0);
}

TEST(FairList, OfEqualListsTakesTheFairest) {
  const FairWorld world = FairWorld::of_blocks({4}, {A, B, A, B});
  const ExposureRule rule{.examination = {1.0, 0.5}, .beta = {1.0}, .epsilon = 10.0};
  FairList lists(TemplateSearch::kFairSwap, kChoiceKey);
  std::vector<std::int32_t> list;
  // Nothing is certain: of AA, AB, BA, BB at UF = 0.5 the closest to 0 is BA.
  const auto choice = lists.make(world.blocks(), {world.groups, &rule, {0.5}}, 1, 2, list);
  EXPECT_EQ(choice.pattern, 0b10U);
  EXPECT_EQ(choice.unfairness, 0.0);
  EXPECT_EQ(choice.templates, 4);
}

/// FairSwap of a query's round, and its list as a vector.
struct Swap : FairSwap {
  Swap(const FairWorld& world, std::uint32_t round, bool uniform = true) : FairSwap(kSwapKey) {
    prepare(world.blocks(uniform), round);
  }
  std::vector<std::int32_t> list() {
    std::vector<std::int32_t> list;
    write_list(list);
    return list;
  }
};

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

// Jia, PhD thesis, University of Virginia, 2022, Figure 3.1: x4 is fetched, x2 gets a block of its own.
TEST(FairSwap, FollowsTheWorkedExample) {
  const FairWorld world = FairWorld::of_blocks({2, 3}, {A, B, A, A, B});
  std::set<std::vector<std::int32_t>> lists;
  for (std::uint32_t round = 1; round <= 400; ++round) {
    Swap swap(world, round);
    const std::int64_t violated = swap.swap(pattern("AABAB"), 5);
    const std::vector<std::int32_t> list = swap.list();
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
    Swap swap(world, number, number % 2 == 0);
    const int length = static_cast<int>(std::min<std::int64_t>(docs, 8));
    for (TemplatePattern wanted = 0; wanted < TemplatePattern{1} << length; ++wanted) {
      const std::int64_t of_a = TemplateTable::needed_of_a(wanted);
      ASSERT_EQ(swap.can_realise(wanted, length),
                of_a <= world.count_of(A) && length - of_a <= world.count_of(B));
      if (!swap.can_realise(wanted, length)) continue;
      const std::int64_t violated = swap.swap(wanted, length);
      const std::vector<std::int32_t> list = swap.list();
      ASSERT_TRUE(is_permutation_of_places(list, docs));
      ASSERT_EQ(world.pattern_of(list, length), wanted);
      ASSERT_EQ(violated, slow_violated(world.orders, list));
    }
  }
}

TEST(FairSwap, KeepsBlocksWhereTheTemplateLetsIt) {
  const FairWorld world = FairWorld::of_blocks({2, 2, 3}, {A, B, A, B, A, B, A});
  Swap swap(world, 1);
  for (const char* kept : {"ABABAAB", "BAABBAA", "ABBAABA"})
    EXPECT_EQ(swap.swap(pattern(kept), 7), 0) << kept;
}

TEST(FairSwap, InListsWithOrdersTakesDocumentsAsTheListDoes) {
  // One block, as place 1 is uncertain beside both others; place 0 is certainly before place 2.
  FairWorld world = FairWorld::of_blocks({3}, {B, A, A});
  world.orders.set(0, 2);
  world.list = {1, 0, 2};
  Swap swap(world, 1, false);
  EXPECT_EQ(swap.swap(pattern("AAB"), 3), 1);
  EXPECT_EQ(swap.list(), (std::vector<std::int32_t>{1, 2, 0}));
  EXPECT_EQ(swap.swap(pattern("ABA"), 3), 0);
}

// χ² over the documents that can take the place.
TEST(FairSwap, FetchesAndPlacesUniformly) {
  const FairWorld world = FairWorld::of_blocks({2, 12}, {A, A, B, B, B, B, B, B, B, B, B, B, B, B});
  std::map<std::int32_t, std::int64_t> fetched;
  std::map<std::int32_t, std::int64_t> second;
  for (std::uint32_t round = 1; round <= 6000; ++round) {
    Swap swap(world, round);
    swap.swap(pattern("ABBA"), 4);
    ++fetched[swap.head()[1]];
    ++second[swap.head()[2]];
  }
  for (const auto& counts : {fetched, second}) {
    ASSERT_EQ(counts.size(), 12U);
    std::vector<std::int64_t> seen;
    for (const auto& [place, count] : counts) seen.push_back(count);
    EXPECT_TRUE(counts_are_even(seen));
  }
}

/// The least violation of a template over all lists, by trying them.
std::int64_t exhaustive(const FairWorld& world, TemplatePattern wanted, int length) {
  std::vector<std::int32_t> list = first_places(world.by_score.size());
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
    Swap swap(world, number);
    ExactSearch exact(kSwapKey);
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

/// A world whose documents are in any of so many groups.
FairWorld world_of(std::size_t groups, std::int64_t docs, double width, std::uint32_t number) {
  FairWorld world = FairWorld::random(docs, width, 0.5, number);
  RngStream random(make_key({.seed = 31, .purpose = Purpose::kProbe}), number);
  for (DocGroup& group : world.groups)
    group = static_cast<DocGroup>(random.index_of(static_cast<std::int64_t>(groups)));
  return world;
}

/// As a ranker with uniform blocks has them: a list that violates certain orders inside them.
void shuffle_blocks(FairWorld& world, std::uint32_t number) {
  RngStream random(make_key({.seed = 32, .purpose = Purpose::kProbe}), number);
  std::int32_t begin = 0;
  for (const std::int32_t end : world.ends) {
    random.shuffle(std::span(world.list).subspan(begin, end - begin));
    begin = end;
  }
}

/// The list of a template: at each place the next document of its group, then all others. Empty without
/// enough documents.
std::vector<std::int32_t> list_of(const FairWorld& world, const std::vector<std::size_t>& pattern) {
  std::vector<std::int32_t> rest = world.list;
  std::vector<std::int32_t> list;
  for (const std::size_t group : pattern) {
    const auto next = std::find_if(rest.begin(), rest.end(), [&](std::int32_t place) {
      return index_of(world.groups[world.by_score[place]]) == group;
    });
    if (next == rest.end()) return {};
    list.push_back(*next);
    rest.erase(next);
  }
  list.insert(list.end(), rest.begin(), rest.end());
  return list;
}

/// UF_gh by its definition, of the pair that is farthest apart; from the exposure of each group.
double farthest_apart(const ExposureRule& rule, const std::vector<double>& exposure) {
  double farthest = 0.0;
  for (std::size_t g = 0; g < exposure.size(); ++g) {
    for (std::size_t h = g + 1; h < exposure.size(); ++h) {
      const double beta_of_g = g == 0 ? 1.0 : rule.beta[g - 1];
      farthest = std::max(farthest, std::abs(exposure[g] - rule.beta[h - 1] / beta_of_g * exposure[h]));
    }
  }
  return farthest;
}

struct Found {
  std::int64_t templates = 0;
  std::int64_t fair = 0;
  std::int64_t violated = -1;  // the fewest of the lists that are as fair as any
  double unfairness = 0.0;     // the least of those
};

/// Goes through all G^k templates. `exposure` is that of earlier lists.
Found try_all(const FairWorld& world, const ExposureRule& rule, const std::vector<double>& exposure,
              int length) {
  Found found;
  std::vector<std::size_t> pattern(length, 0);
  double closest = 0.0;
  for (bool more = true; more;) {
    const std::vector<std::int32_t> list = list_of(world, pattern);
    if (!list.empty()) {
      std::vector<double> after = exposure;
      for (int rank = 0; rank < length; ++rank) after[pattern[rank]] += rule.examination[rank];
      const double size = farthest_apart(rule, after);
      const std::int64_t violated = slow_violated(world.orders, list);
      const bool is_fair = size <= rule.epsilon;
      ++found.templates;
      if (is_fair && found.fair++ == 0) found.violated = -1;
      const double rank = is_fair ? 0.0 : size;
      if ((is_fair || found.fair == 0) &&
          (found.violated < 0 || rank < closest - 1e-9 ||
           (rank < closest + 1e-9 &&
            (violated < found.violated || (violated == found.violated && size < found.unfairness))))) {
        closest = rank;
        found.violated = violated;
        found.unfairness = size;
      }
    }
    more = false;
    for (int rank = 0; rank < length && !more; ++rank) {
      more = ++pattern[rank] < exposure.size();
      if (!more) pattern[rank] = 0;
    }
  }
  return found;
}

TEST(ManyGroups, ChooseTheBestOfAllTemplates) {
  ManyGroups search(kChoiceKey);
  std::int64_t fair = 0;
  std::int64_t not_fair = 0;
  for (std::uint32_t number = 0; number < 240; ++number) {
    const std::size_t groups = 3 + number % 3;
    const int length = groups == 3 ? 6 : 5;
    FairWorld world = world_of(groups, length + number % 9, 0.02 * (number % 40), number);
    if (number % 2 == 1) shuffle_blocks(world, number);
    RngStream random(make_key({.seed = 33, .purpose = Purpose::kProbe}), number);
    std::vector<double> beta;
    while (beta.size() + 1 < groups) beta.push_back(0.5 + random.uniform());
    const ExposureRule rule = rule_of(length, beta, 0.1 + random.uniform());
    std::vector<double> exposure(groups);
    for (double& one : exposure) one = random.uniform();
    FairRound before{world.groups, &rule, {}};
    for (std::size_t group = 0; group < groups; ++group)
      rule.add(static_cast<DocGroup>(group), exposure[group], before.unfairness);

    std::vector<std::int32_t> list;
    const FairChoice choice = search.choose(world.blocks(number % 2 == 1), before, number, length, list);
    const Found found = try_all(world, rule, exposure, length);
    ASSERT_TRUE(is_permutation_of_places(list, std::ssize(world.by_score)));
    ASSERT_EQ(choice.violated, slow_violated(world.orders, list)) << number;
    ASSERT_EQ(choice.realisable, found.fair > 0) << number;
    ASSERT_EQ(choice.violated, found.violated) << number;
    ASSERT_NEAR(std::abs(choice.unfairness), found.unfairness, 1e-9) << number;
    std::vector<double> after = exposure;
    for (int rank = 0; rank < length; ++rank)
      after[index_of(world.groups[world.by_score[list[rank]]])] += rule.examination[rank];
    ASSERT_NEAR(farthest_apart(rule, after), std::abs(choice.unfairness), 1e-9);
    ASSERT_FALSE(choice.search_gave_up);
    (choice.realisable ? fair : not_fair) += 1;
  }
  EXPECT_GT(fair, 40);
  EXPECT_GT(not_fair, 40);
}

// No list at all that is within ε violates fewer orders between blocks.
TEST(ManyGroups, NoListIsBetterBetweenBlocks) {
  ManyGroups search(kChoiceKey);
  std::int64_t fair = 0;
  for (std::uint32_t number = 0; number < 40; ++number) {
    const std::vector<DocGroup> groups = world_of(3, 7, 0.0, number).groups;
    const FairWorld world = FairWorld::of_blocks({2, 3, 2}, groups);
    const ExposureRule rule = rule_of(4, {1.2, 0.8}, 0.9);
    const FairRound before{world.groups, &rule, {}};
    std::vector<std::int32_t> list;
    const FairChoice choice = search.choose(world.blocks(false), before, number, 4, list);
    std::int64_t least = -1;
    std::vector<std::int32_t> places = world.list;
    do {
      PairFigures unfairness{};
      for (int rank = 0; rank < 4; ++rank)
        rule.add(world.groups[world.by_score[places[rank]]], rule.examination[rank], unfairness);
      if (std::abs(rule.farthest(unfairness)) > rule.epsilon) continue;
      const std::int64_t violated = slow_violated(world.orders, places);
      if (least < 0 || violated < least) least = violated;
    } while (std::next_permutation(places.begin(), places.end()));
    ASSERT_EQ(choice.realisable, least >= 0);
    if (!choice.realisable) continue;
    ASSERT_EQ(choice.violated, least);
    ++fair;
  }
  EXPECT_GT(fair, 10);
}

TEST(ManyGroups, TwoGroupsHaveTheListOfFairSwap) {
  ManyGroups search(kChoiceKey);
  FairList lists(TemplateSearch::kFairSwap, kChoiceKey);
  const ExposureRule rule = rule_of(10, {1.3}, 0.4);
  for (std::uint32_t number = 0; number < 200; ++number) {
    const FairWorld world = FairWorld::random(2 + number % 40, 0.01 * (number % 50), 0.4, number);
    FairRound before{world.groups, &rule, {}};
    before.unfairness[0] = 0.01 * static_cast<double>(number % 80) - 0.4;
    std::vector<std::int32_t> expected;
    std::vector<std::int32_t> list;
    const FairChoice one = lists.make(world.blocks(false), before, number, 10, expected);
    const FairChoice other = search.choose(world.blocks(false), before, number, one.length, list);
    ASSERT_EQ(other.pattern, one.pattern) << number;
    ASSERT_EQ(other.violated, one.violated);
    ASSERT_EQ(other.unfairness, one.unfairness);
    ASSERT_EQ(other.realisable, one.realisable);
    ASSERT_EQ(list, expected);
  }
}

TEST(FairList, StaysWithinEpsilonWhereverAListCan) {
  const struct {
    TemplateSearch search;
    std::size_t groups;
    std::uint32_t rounds;
    double epsilon;
    std::int64_t most_unfair;
    std::int64_t most_given_up;
  } cases[] = {{TemplateSearch::kFairSwap, 2, 5000, 0.5, 2500, 0},
               {TemplateSearch::kExact, 2, 300, 0.5, 150, 0},
               {TemplateSearch::kFairSwap, 3, 300, 1.0, 19, 0},
               {TemplateSearch::kFairSwap, 4, 300, 1.0, 19, 0},
               {TemplateSearch::kFairSwap, 6, 60, 1.0, 14, 60}};
  for (const auto& [search, groups, rounds, epsilon, most_unfair, most_given_up] : cases) {
    const int length = groups == 2 ? 6 : 10;
    const ExposureRule rule =
        rule_of(length, std::vector<double>(groups - 1, groups == 2 ? 1.2 : 1.1), epsilon);
    FairList lists(search, kChoiceKey);
    ExposureLedger ledger;
    std::int64_t unrealisable = 0;
    std::int64_t gave_up = 0;
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      const double width = 0.02 * (round % 40);
      const FairWorld world =
          groups == 2 ? FairWorld::random(2 + round % 23, width, round % 50 == 0 ? 0.0 : 0.45, round)
                      : world_of(groups, 10 + round % 50, width, round);
      const FairRound fair{world.groups, &rule, ledger.unfairness()};
      std::vector<std::int32_t> list;
      const FairChoice choice = lists.make(world.blocks(round % 2 == 0), fair, round, length, list);
      ASSERT_TRUE(is_permutation_of_places(list, std::ssize(world.by_score)));
      ASSERT_EQ(choice.violated, slow_violated(world.orders, list));
      std::vector<std::int32_t> shown;
      for (std::size_t rank = 0; rank < std::min<std::size_t>(length, list.size()); ++rank)
        shown.push_back(world.by_score[list[rank]]);
      ledger.observe(rule, world.groups, shown);
      ASSERT_EQ(rule.farthest(ledger.unfairness()), choice.unfairness);
      ASSERT_EQ(std::abs(choice.unfairness) <= rule.epsilon, choice.realisable);
      unrealisable += choice.realisable ? 0 : 1;
      gave_up += choice.search_gave_up ? 1 : 0;
    }
    EXPECT_EQ(ledger.rounds() - ledger.fair_rounds(), unrealisable);
    EXPECT_LE(unrealisable, most_unfair) << groups;
    EXPECT_LE(gave_up, most_given_up) << groups;
    if (groups == 2) {
      EXPECT_GT(unrealisable, 0) << "queries of one group have no fair list";
    }
  }
}

}  // namespace
}  // namespace olrank
