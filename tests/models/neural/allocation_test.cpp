// What a round of a neural ranker allocates once the same queries come back.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/models/neural/recorded_rounds.h"
#include "tests/support/counted_allocations.h"

namespace olrank {
namespace {

/// Allocations of each of `rounds` rounds after `warm` others.
std::vector<std::int64_t> allocations_of(const RankerSettings& settings, std::uint32_t warm,
                                         std::uint32_t rounds) {
  const SmallWorld world(95, 2, 10, 5);
  const auto ranker = make_neural(settings, world.features());
  TestContext context;
  std::vector<std::int64_t> counts;
  std::vector<std::int32_t> shown(10);
  std::vector<std::uint8_t> clicks(10);
  for (std::uint32_t round = 1; round <= warm + rounds; ++round) {
    const QueryDocs query = world.query_of(round);
    const std::int64_t before = allocation_count();
    const auto docs = ranker->rank(context.round, query, round).docs;
    std::int64_t count = allocation_count() - before;
    std::copy(docs.begin(), docs.end(), shown.begin());
    for (std::size_t rank = 0; rank < 10; ++rank) {
      RngStream coins(make_key({.seed = 4, .purpose = Purpose::kClick}), round,
                      static_cast<std::uint32_t>(shown[rank]));
      clicks[rank] = coins.uniform() < 0.5 ? 1 : 0;
    }
    const std::int64_t between = allocation_count();
    ranker->learn(context.round, {round, query, shown, clicks});
    count += allocation_count() - between;
    if (round > warm) counts.push_back(count);
  }
  return counts;
}

/// A round allocates nothing once its arrays have grown. The diagonal covariance copies a round's pairs, at
/// most one vector for each of five; medians, as some rounds let an array grow.
TEST(AllocationTest, ConfidentNetworksAllocateNothing) {
  for (const std::int64_t steps : {1, 10}) {
    RankerSettings settings = neural_settings("diagonal");
    settings.trainer.steps = steps;
    std::vector<std::int64_t> counts = allocations_of(settings, 200, 201);
    std::sort(counts.begin(), counts.end());
    EXPECT_EQ(counts.front(), 0);
    EXPECT_LE(counts[100], 5);
    EXPECT_LE(counts.back(), 40);
  }
}

TEST(AllocationTest, SamplesAllocateNothing) {
  for (const std::string name : {"diagonal", "ensemble"}) {
    RankerSettings settings = neural_settings(name);
    settings.trainer.retrain = Retrain::kGrowth;
    settings.trainer.replay = 64;
    std::vector<std::int64_t> counts = allocations_of(settings, 300, 201);
    std::sort(counts.begin(), counts.end());
    EXPECT_EQ(counts.front(), 0);
    EXPECT_LE(counts[100], name == "diagonal" ? 5 : 0);  // the covariance's, as above
    EXPECT_LE(counts.back(), 40);
  }
}

TEST(AllocationTest, EnsemblesAllocateNothing) {
  for (const std::int64_t members : {1, 3}) {
    for (const std::int64_t steps : {1, 10}) {
      RankerSettings settings = neural_settings("ensemble");
      settings.posterior.members = members;
      settings.trainer.steps = steps;
      std::vector<std::int64_t> counts = allocations_of(settings, 200, 201);
      std::sort(counts.begin(), counts.end());
      EXPECT_EQ(counts[100], 0);
      EXPECT_LE(counts.back(), 40);
    }
  }
}

}  // namespace
}  // namespace olrank
