#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/online/online_ranker.h"
#include "cuda/engine/device_network.h"
#include "cuda/runtime/work.h"
#include "models/neural/device_ranker.h"
#include "tests/cuda/engine/small_device_rankers.h"
#include "tests/cuda/ops/kernel_test.h"
#include "tests/support/saved_state.h"

namespace olrank {
namespace {

// Rankers on a device with queries that are handed over, and lists that are made ahead of their rounds.

using namespace small_device_rankers;

std::unique_ptr<DeviceRanker> make_for_any_query(const std::string& name) {
  return std::make_unique<DeviceRanker>(kFeatures, settings_of(name), test_keys(), 10, RankerDevice{},
                                        device::make_network);
}

OLRANK_KERNEL_TEST_SUITE(HandedQueriesTest);

/// A query at another address, under names of its own.
struct HandedQuery {
  explicit HandedQuery(const QueryDocs& query)
      : values(query.features.values, query.features.values + query.docs() * kFeatures), docs(query) {
    for (std::int32_t doc = 0; doc < query.docs(); ++doc) numbers.push_back(query.number(doc));
    docs.first_doc = 0;
    docs.features.values = values.data();
    docs.numbers = numbers;
  }
  std::vector<float> values;
  std::vector<std::int64_t> numbers;
  QueryDocs docs;
};

TEST_P(HandedQueriesTest, QueriesThatAreHandedOverGiveTheBitsOfThoseThatAreThere) {
  std::vector<std::string> names = {"dual", "lambdarank", "ensemble"};
  if (static_cast<int>(GetParam()) == 0)
    names.insert(names.end(), {"primal", "reference_ensemble", "growth"});
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const auto resident = make_on_device(settings_of(name));
    auto handed = make_for_any_query(name);
    TestContext context;
    const std::uint32_t rounds = rounds_of(name);
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      const QueryDocs query = world().query_of(round);
      const auto docs = resident->rank(context.round, query, round).docs;
      const std::vector<std::int32_t> list(docs.begin(), docs.end());
      const std::vector<std::uint8_t> clicks = world().perfect_clicks(query.query, list);
      resident->learn(context.round, {round, query, list, clicks});
      HandedQuery copy(query);
      EXPECT_TRUE(std::ranges::equal(handed->rank(context.round, copy.docs, round).docs, list));
      // The documents that were ranked at this address may be gone.
      HandedQuery other(copy.docs);
      std::fill(copy.values.begin(), copy.values.end(), -1.0F);
      handed->learn(context.round, {round, other.docs, list, clicks});
      if (round != rounds - 2) continue;
      const std::string state = state_of(*handed);
      handed = make_for_any_query(name);
      load_state(*handed, state);
    }
    EXPECT_EQ(handed->model().tensors.front().values, resident->model().tensors.front().values);
    const Detail expected = list_and_detail_of(*resident, 2, rounds + 1);
    HandedQuery query(world().query(2));
    const Detail found = list_and_detail_of(*handed, query.docs, rounds + 1);
    EXPECT_EQ(found.list, expected.list);
    EXPECT_EQ(found.round.scores, expected.round.scores);
    EXPECT_EQ(found.round.width_sq, expected.round.width_sq);
    EXPECT_EQ(found.round.certain, expected.round.certain);
  }
}

/// Plays rounds on both, and shows the lists of the first.
void learn_the_same(OnlineRanker& first, OnlineRanker& second, std::uint32_t rounds) {
  TestContext context;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    const RecordedRound played = play_round(first, context.round, world(), round);
    second.learn(context.round, played.feedback(world(), round));
  }
}

/// Tasks over the queries of the world and a query that is longer than any before.
std::vector<RankingTask> some_tasks(const SmallWorld& large) {
  std::vector<RankingTask> tasks;
  for (std::uint32_t number = 0; number < 20; ++number) {
    RankingTask task;
    task.docs = (number == 7 ? large.query(0) : world().query(number % world().queries())).features;
    task.round = 900 + number;
    task.cutoff = 4 + number % 5;
    task.explore = number % 3 != 0;
    tasks.push_back(task);
  }
  return tasks;
}

/// As many tasks over one query.
std::vector<RankingTask> equal_tasks(std::size_t count) {
  std::vector<RankingTask> tasks(count);
  for (RankingTask& task : tasks) task.docs = world().query(1).features;
  return tasks;
}

/// Lists that are made at once.
struct MadeLists {
  std::vector<Ranking> rankings;
  std::vector<ListRequest> requests;

  MadeLists(DeviceRanker& ranker, const std::vector<RankingTask>& tasks) : rankings(tasks.size()) {
    for (std::size_t i = 0; i < tasks.size(); ++i) requests.push_back({&tasks[i], &rankings[i], {}});
    TestContext context;
    ranker.make_lists(context.execution, requests);
  }
};

TEST_P(HandedQueriesTest, ListsAheadOfRoundsAreThoseOfASnapshotOnTheCpu) {
  const SmallWorld large(7, 1, 150, kFeatures);
  const std::vector<RankingTask> tasks = some_tasks(large);
  for (const std::string name : {"dual", "diagonal", "lambdarank", "expected_ensemble"}) {
    SCOPED_TRACE(name);
    const auto on_cpu = make_neural(settings_of(name), kFeatures);
    const auto on_device = make_for_any_query(name);
    learn_the_same(*on_cpu, *on_device, 4);
    const auto [found, requests] = MadeLists(*on_device, tasks);
    TestContext context;
    const auto frozen = on_cpu->freeze();
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      Ranking expected;
      frozen->rank(context.execution, tasks[i], expected);
      ASSERT_EQ(requests[i].failure, nullptr);
      EXPECT_TRUE(all_near(found[i].scores, expected.scores, 2e-4, 1e-5));
      EXPECT_EQ(found[i].by_score, expected.by_score);
      EXPECT_EQ(found[i].list, expected.list);
      EXPECT_EQ(found[i].propensity, expected.propensity);
      ASSERT_TRUE(found[i].certainty && expected.certainty);
      EXPECT_EQ(found[i].certainty->certain_pairs, expected.certainty->certain_pairs);
      EXPECT_EQ(found[i].certainty->shown_pairs, expected.certainty->shown_pairs);
    }
  }
}

// A ranker that was asked for many lists at once has the state of one that was asked for none.
TEST_P(HandedQueriesTest, ManyListsAtOnceHaveTheBitsOfEachAlone) {
  const SmallWorld large(7, 1, 150, kFeatures);
  const std::vector<RankingTask> tasks = some_tasks(large);
  for (const std::string name : {"dual", "ensemble"}) {
    SCOPED_TRACE(name);
    const auto asked = make_for_any_query(name);
    const auto other = make_for_any_query(name);
    learn_the_same(*asked, *other, 3);
    TestContext context;
    const std::vector<Ranking> together = MadeLists(*asked, tasks).rankings;
    for (std::size_t i = 0; i < tasks.size(); i += 6) {
      const Ranking alone = MadeLists(*other, {tasks[i]}).rankings.front();
      EXPECT_EQ(together[i].scores, alone.scores);
      EXPECT_EQ(together[i].list, alone.list);
    }
    const auto quiet = make_for_any_query(name);
    learn_the_same(*make_for_any_query(name), *quiet, 3);
    const RecordedRound played = play_round(*asked, context.round, world(), 4);
    quiet->learn(context.round, played.feedback(world(), 4));
    EXPECT_TRUE(state_of(*asked) == state_of(*quiet));
  }
}

// Its scores come to the host where those of the latest short list are.
TEST_P(HandedQueriesTest, ALongQueryMayFollowManyShortLists) {
  const SmallWorld large(7, 1, 150, kFeatures);
  for (const std::string name : {"dual", "ensemble"}) {
    SCOPED_TRACE(name);
    const auto ranker = make_for_any_query(name);
    const HandedQuery query(large.query(0));
    MadeLists(*ranker, equal_tasks(16));
    const auto expected = list_and_detail_of(*ranker, query.docs, 1).round.scores;
    MadeLists(*ranker, equal_tasks(16));
    EXPECT_EQ(list_and_detail_of(*ranker, query.docs, 2).round.scores, expected);
  }
}

// Some document has infinite activations of both signs, whose sum is not a number; nor are its widths,
// which concern the whole answer.
TEST_P(HandedQueriesTest, AListThatCannotBeMadeLeavesTheOthers) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << "one order of threads is enough";
  std::vector<float> broken(10 * kFeatures);
  for (std::size_t doc = 0; doc < 10; ++doc) {
    broken[doc * kFeatures + doc / 2] =
        (doc % 2 == 0 ? 1.0F : -1.0F) * std::numeric_limits<float>::infinity();
  }
  for (const std::string name : {"ensemble", "diagonal", "dual"}) {
    SCOPED_TRACE(name);
    const auto ranker = make_for_any_query(name);
    learn_the_same(*make_for_any_query(name), *ranker, 3);
    std::vector<RankingTask> tasks = equal_tasks(3);
    tasks[1].docs = {broken.data(), 10, kFeatures};
    const std::string before = state_of(*ranker);
    const auto [rankings, requests] = MadeLists(*ranker, tasks);
    EXPECT_TRUE(state_of(*ranker) == before);
    EXPECT_EQ(requests[0].failure, nullptr);
    ASSERT_NE(requests[1].failure, nullptr);
    EXPECT_THROW(std::rethrow_exception(requests[1].failure), NumericError);
    EXPECT_EQ(requests[2].failure, nullptr);
    EXPECT_EQ(rankings[0].by_score.size(), static_cast<std::size_t>(kDocs));
    EXPECT_EQ(rankings[0].by_score, rankings[2].by_score);
    StateWriter state;
    EXPECT_THROW(ranker->save_for_lists(state), Error);
  }
}

#if defined(OLRANK_KERNELS_EMULATED)
// Kernels and copies of sixteen lists, as docs/evidence/GPU-RECORD.md counts them.
TEST_P(HandedQueriesTest, ManyListsAtOnceTakeFewStarts) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << "one order of threads is enough";
  for (const auto& [name, expected] : {std::pair{"dual", 100}, {"diagonal", 100}, {"ensemble", 52}}) {
    const auto ranker = make_for_any_query(name);
    learn_the_same(*make_for_any_query(name), *ranker, 3);
    MadeLists(*ranker, equal_tasks(16));  // memory grows
    const std::int64_t before = emulation::counts.starts;
    MadeLists(*ranker, equal_tasks(16));
    EXPECT_EQ(emulation::counts.starts - before, expected) << name;
  }
}

// Documents that have just been ranked have their scores and widths already.
TEST_P(HandedQueriesTest, WhatWasJustRankedIsNotScoredAgain) {
  if (static_cast<int>(GetParam()) != 0) GTEST_SKIP() << "one order of threads is enough";
  std::vector<std::int64_t> blocks;
  std::vector<std::vector<float>> learned;
  for (const bool ranked : {true, false}) {
    const auto ranker = make_for_any_query("dual");
    TestContext context;
    const HandedQuery query(world().query(0));
    const HandedQuery other(world().query(1));
    const auto docs = ranker->rank(context.round, query.docs, 1).docs;
    const std::vector<std::int32_t> list(docs.begin(), docs.end());
    if (!ranked) ranker->rank(context.round, other.docs, 1);
    const std::vector<std::uint8_t> clicks = world().perfect_clicks(0, list);
    const std::int64_t before = emulation::counts.blocks_run;
    ranker->learn(context.round, {1, query.docs, list, clicks});
    blocks.push_back(emulation::counts.blocks_run - before);
    learned.push_back(flat_theta(*ranker));
  }
  EXPECT_LT(blocks[0], blocks[1]);
  EXPECT_EQ(learned[0], learned[1]);
}
#endif

OLRANK_KERNEL_TEST_SUITE(SharedDocumentsTest);

std::vector<float> contents(const device::SharedDocuments& documents) {
  std::vector<float> values(documents.bytes() / static_cast<std::int64_t>(sizeof(float)));
  device::copy_to_host(documents.data(), std::span(values));
  return values;
}

TEST_P(SharedDocumentsTest, UsersOfAMatrixShareOneCopyUntilTheLastIsGone) {
  const std::vector<float> numbers = random_numbers(60, 3);
  const FeatureMatrix docs{numbers.data(), 12, 5};
  std::optional<device::SharedDocuments> first(std::in_place, 0, docs);
  const device::SharedDocuments second(0, docs);
  const device::SharedDocuments part(0, {numbers.data(), 6, 5});
  EXPECT_EQ(first->data(), second.data());
  EXPECT_NE(first->data(), part.data());
  EXPECT_EQ(contents(part), std::vector<float>(numbers.begin(), numbers.begin() + 30));
  const float* there = first->data();
  first.reset();
  EXPECT_EQ(second.data(), there);
  EXPECT_EQ(contents(second), numbers);
  EXPECT_EQ(device::SharedDocuments(0, {nullptr, 0, 5}).bytes(), 0);
}

#if defined(OLRANK_KERNELS_EMULATED)

TEST_P(SharedDocumentsTest, EachDeviceHoldsOneCopy) {
  constexpr std::size_t kBytes = 60 * sizeof(float);
  const std::vector<float> numbers = random_numbers(60, 3);
  const FeatureMatrix docs{numbers.data(), 12, 5};
  emulation::set_device_count(2);
  const auto bytes_on = [](int device) { return emulation::bytes_allocated_on(device); };
  {
    const device::SharedDocuments first(0, docs);
    const device::SharedDocuments second(0, docs);
    EXPECT_EQ(bytes_on(0), kBytes);
    EXPECT_EQ(bytes_on(1), 0U);
    device::use_device(1);
    {
      const device::SharedDocuments other(1, docs);
      const device::SharedDocuments beside(1, docs);
      EXPECT_EQ(bytes_on(0), kBytes);
      EXPECT_EQ(bytes_on(1), kBytes);
      EXPECT_NE(other.data(), first.data());
      EXPECT_EQ(contents(other), numbers);
    }
    device::use_device(0);
  }
  EXPECT_EQ(bytes_on(0), 0U);
  EXPECT_EQ(bytes_on(1), 0U);
}

#endif

}  // namespace
}  // namespace olrank
