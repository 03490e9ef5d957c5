#include "core/fair/many_groups.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/fair/fair_list.h"
#include "tests/core/fair/fair_world.h"

namespace olrank {
namespace {

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

TEST(ExposureRule, ThePairsOfThreeGroupsAreTransitive) {
  const ExposureRule rule = rule_of(4, {2.0, 0.5}, 1.0);
  EXPECT_DOUBLE_EQ(rule.beta_of(0, 1) * rule.beta_of(1, 2), rule.beta_of(0, 2));
  ExposureLedger ledger;
  ledger.observe(rule, std::vector{DocGroup::kB, static_cast<DocGroup>(2), DocGroup::kA},
                 std::vector<std::int32_t>{0, 1, 2});
  const auto& p = rule.examination;
  EXPECT_DOUBLE_EQ(ledger.unfairness()[pair_of(0, 1)], p[2] - 2.0 * p[0]);
  EXPECT_DOUBLE_EQ(ledger.unfairness()[pair_of(0, 2)], p[2] - 0.5 * p[1]);
  EXPECT_DOUBLE_EQ(ledger.unfairness()[pair_of(1, 2)], p[0] - 0.25 * p[1]);
  EXPECT_EQ(rule.farthest(ledger.unfairness()), p[2] - 2.0 * p[0]);
  EXPECT_EQ(ledger.fair_rounds(), 0);
}

TEST(ManyGroups, ChooseTheBestOfAllTemplates) {
  ManyGroups search(choice_key());
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
  ManyGroups search(choice_key());
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
  ManyGroups search(choice_key());
  FairList lists(TemplateSearch::kFairSwap, choice_key());
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

TEST(ManyGroups, StayWithinEpsilonWhereverAListCan) {
  for (const std::size_t groups : {3, 4, 6}) {
    const ExposureRule rule = rule_of(10, std::vector<double>(groups - 1, 1.1), 1.0);
    FairList lists(TemplateSearch::kFairSwap, choice_key());
    ExposureLedger ledger;
    std::int64_t gave_up = 0;
    const std::uint32_t rounds = groups == 6 ? 60 : 300;
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      const FairWorld world = world_of(groups, 10 + round % 50, 0.02 * (round % 40), round);
      const FairRound fair{world.groups, &rule, ledger.unfairness()};
      std::vector<std::int32_t> list;
      const FairChoice choice = lists.make(world.blocks(round % 2 == 0), fair, round, 10, list);
      std::vector<std::int32_t> shown;
      for (std::size_t rank = 0; rank < 10; ++rank) shown.push_back(world.by_score[list[rank]]);
      ledger.observe(rule, world.groups, shown);
      ASSERT_EQ(rule.farthest(ledger.unfairness()), choice.unfairness);
      ASSERT_EQ(std::abs(choice.unfairness) <= rule.epsilon, choice.realisable);
      gave_up += choice.search_gave_up ? 1 : 0;
    }
    EXPECT_GT(ledger.fair_rounds(), groups == 6 ? 45 : 280) << groups;
    EXPECT_LE(gave_up, groups == 6 ? 60 : 0) << groups;
  }
}

}  // namespace
}  // namespace olrank
