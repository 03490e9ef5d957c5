#include "core/ranks/rank_place.h"

#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<RankPlace> place_in(const Variables& variables) {
  return rank_place([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const Variables kByHand = {
    {"RANK", "2"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};

TEST(RankPlaceTest, OneProcessHasNone) {
  EXPECT_FALSE(place_in({}));
  EXPECT_FALSE(place_in({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
}

TEST(RankPlaceTest, RanksOfOneMachineAreLocal) {
  const RankPlace place = *place_in(kByHand);
  EXPECT_EQ(place.rank, 2);
  EXPECT_EQ(place.ranks, 3);
  EXPECT_EQ(place.local_rank, 2);
  EXPECT_EQ(place.local_ranks, 3);
  EXPECT_EQ(place.address, "127.0.0.1");
  EXPECT_EQ(place.port, 29500);
  EXPECT_FALSE(place.hosts_store);
  EXPECT_TRUE(place_in(with(kByHand, {{"RANK", "0"}}))->hosts_store);
}

TEST(RankPlaceTest, RanksOfOtherMachinesAreAloneUnlessTorchrunSaysMore) {
  const Variables elsewhere = with(kByHand, {{"MASTER_ADDR", "node1"}});
  EXPECT_EQ(place_in(elsewhere)->local_rank, 0);
  EXPECT_EQ(place_in(elsewhere)->local_ranks, 1);
  const RankPlace place = *place_in(with(elsewhere, {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}}));
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_ranks, 2);
}

TEST(RankPlaceTest, TorchrunHostsTheStoreItself) {
  const RankPlace place = *place_in(
      with(kByHand,
           {{"RANK", "0"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"TORCHELASTIC_RESTART_COUNT", "4"}}));
  EXPECT_FALSE(place.hosts_store);
  EXPECT_EQ(place.attempt, 4);
}

TEST(RankPlaceTest, RefusesWhatIsMissingOrContradicts) {
  const auto complaint = [](const Variables& variables) {
    return message_of([&] { place_in(variables); });
  };
  EXPECT_EQ(complaint({{"WORLD_SIZE", "3"}}),
            "WORLD_SIZE asks for 3 ranks, but RANK is not set: start each rank with RANK, WORLD_SIZE, "
            "MASTER_ADDR and MASTER_PORT, as torchrun does.");
  EXPECT_EQ(complaint(with(kByHand, {{"RANK", "3"}})),
            "RANK has to be a number from 0 to 2, not '3': torchrun sets it.");
  EXPECT_EQ(complaint(with(kByHand, {{"WORLD_SIZE", "-1"}})),
            "WORLD_SIZE has to be a number from 1 to 4096, not '-1': torchrun sets it.");
  EXPECT_EQ(complaint(with(kByHand, {{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "1"}})),
            "LOCAL_RANK has to be a number from 0 to 0, not '1': torchrun sets it.");
  EXPECT_EQ(complaint(with(kByHand, {{"MASTER_PORT", "29500x"}})),
            "MASTER_PORT has to be a number from 1 to 65535, not '29500x': torchrun sets it.");
}

}  // namespace
}  // namespace olrank
