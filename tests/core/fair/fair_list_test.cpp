#include "core/fair/fair_list.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/fair/fair_world.h"

namespace olrank {
namespace {

TEST(TemplateTable, GainsAreTheLedgers) {
  const ExposureRule rule = rule_of(7, {1.3}, 1.0);
  const TemplateTable table(rule, 7);
  for (TemplatePattern pattern = 0; pattern < table.size(); ++pattern) {
    std::vector<DocGroup> groups;
    std::vector<std::int32_t> shown;
    for (int place = 0; place < 7; ++place) {
      groups.push_back((pattern >> place & 1U) != 0 ? DocGroup::kA : DocGroup::kB);
      shown.push_back(place);
    }
    ExposureLedger ledger;
    ledger.observe(rule, groups, shown);
    ASSERT_EQ(ledger.unfairness()[0], table.gain(pattern));
  }
  // Eq. (3.1.2)'s example AABAB: A has P(1) + P(2) + P(4), B has P(3) + P(5).
  const auto& p = rule.examination;
  EXPECT_NEAR(TemplateTable(rule, 5).gain(0b01011), p[0] + p[1] + p[3] - 1.3 * (p[2] + p[4]), 1e-15);
}

TEST(ExposureLedger, CountsWhatWasExamined) {
  const ExposureRule rule = rule_of(3, {2.0}, 1.0);
  ExposureLedger ledger;
  ledger.observe_examined(rule, std::vector{DocGroup::kB, DocGroup::kA}, std::vector<std::int32_t>{1, 0},
                          std::vector<std::uint8_t>{1, 1});
  EXPECT_EQ(ledger.unfairness()[0], -1.0);
  EXPECT_EQ(ledger.fair_rounds(), 1);
  ledger.observe_examined(rule, std::vector{DocGroup::kB, DocGroup::kA}, std::vector<std::int32_t>{0, 1},
                          std::vector<std::uint8_t>{1, 0});
  EXPECT_EQ(ledger.unfairness()[0], -3.0);
  EXPECT_EQ(ledger.of(DocGroup::kB), 2.0);
  EXPECT_EQ(ledger.of(DocGroup::kA), 1.0);
  EXPECT_EQ(ledger.fair_rounds(), 1);
  EXPECT_EQ(ledger.rounds(), 2);
}

TEST(FairList, StaysWithinEpsilonWhereverAListCan) {
  for (const TemplateSearch search : {TemplateSearch::kFairSwap, TemplateSearch::kExact}) {
    const int rounds = search == TemplateSearch::kExact ? 300 : 5000;
    const ExposureRule rule = rule_of(6, {1.2}, 0.5);
    FairList lists(search, choice_key());
    ExposureLedger ledger;
    std::int64_t unrealisable = 0;
    for (int round = 1; round <= rounds; ++round) {
      const FairWorld world =
          FairWorld::random(2 + round % 23, 0.02 * (round % 40), round % 50 == 0 ? 0.0 : 0.45, round);
      const FairRound fair{world.groups, &rule, ledger.unfairness()};
      std::vector<std::int32_t> list;
      const FairList::Choice choice = lists.make(world.blocks(round % 2 == 0), fair, round, 6, list);
      ASSERT_TRUE(is_permutation_of_places(list, std::ssize(world.by_score)));
      ASSERT_EQ(choice.violated, slow_violated(world.orders, list));
      ASSERT_FALSE(choice.search_gave_up);
      std::vector<std::int32_t> shown;
      for (std::size_t rank = 0; rank < std::min<std::size_t>(6, list.size()); ++rank)
        shown.push_back(world.by_score[list[rank]]);
      ledger.observe(rule, world.groups, shown);
      ASSERT_EQ(ledger.unfairness()[0], choice.unfairness);
      ASSERT_EQ(std::abs(ledger.unfairness()[0]) <= rule.epsilon, choice.realisable);
      unrealisable += choice.realisable ? 0 : 1;
    }
    EXPECT_EQ(ledger.rounds() - ledger.fair_rounds(), unrealisable);
    EXPECT_GT(unrealisable, 0) << "queries of one group have no fair list";
    EXPECT_LT(unrealisable, rounds / 2);
  }
}

TEST(FairList, WithoutATemplateWithinEpsilonTakesTheClosest) {
  const FairWorld world = FairWorld::of_blocks({2, 2}, std::vector<DocGroup>(4, DocGroup::kA));
  const ExposureRule rule = rule_of(3, {1.0}, 0.25);
  FairList lists(TemplateSearch::kFairSwap, choice_key());
  std::vector<std::int32_t> list;
  const auto choice = lists.make(world.blocks(), {world.groups, &rule, {}}, 1, 3, list);
  EXPECT_FALSE(choice.realisable);
  EXPECT_EQ(choice.pattern, 0b111U);
  EXPECT_EQ(choice.templates, 1);
  EXPECT_EQ(choice.violated, 0);
}

TEST(FairList, OfEqualListsTakesTheFairest) {
  const FairWorld world =
      FairWorld::of_blocks({4}, {DocGroup::kA, DocGroup::kB, DocGroup::kA, DocGroup::kB});
  const ExposureRule rule{.examination = {1.0, 0.5}, .beta = {1.0}, .epsilon = 10.0};
  FairList lists(TemplateSearch::kFairSwap, choice_key());
  std::vector<std::int32_t> list;
  // Nothing is certain: of AA, AB, BA, BB at UF = 0.5 the closest to 0 is BA.
  const auto choice = lists.make(world.blocks(), {world.groups, &rule, {0.5}}, 1, 2, list);
  EXPECT_EQ(choice.pattern, 0b10U);
  EXPECT_EQ(choice.unfairness, 0.0);
  EXPECT_EQ(choice.templates, 4);
}

TEST(FairList, ExactIsNeverWorse) {
  FairList greedy(TemplateSearch::kFairSwap, choice_key());
  FairList exact(TemplateSearch::kExact, choice_key());
  const ExposureRule rule = rule_of(8, {1.0}, 0.3);
  std::int64_t sums[2] = {0, 0};
  for (std::uint32_t round = 1; round <= 60; ++round) {
    const FairWorld world = FairWorld::random(40, 0.3, 0.3, round);
    std::vector<std::int32_t> list;
    const FairRound fair{world.groups, &rule, {0.2}};
    const auto one = greedy.make(world.blocks(), fair, round, 8, list);
    const auto other = exact.make(world.blocks(), fair, round, 8, list);
    ASSERT_LE(other.violated, one.violated);
    sums[0] += one.violated;
    sums[1] += other.violated;
  }
  EXPECT_LT(sums[1], sums[0]);
}

}  // namespace
}  // namespace olrank
