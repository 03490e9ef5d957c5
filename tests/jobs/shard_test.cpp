#include "jobs/output_folder.h"

#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "tests/support/message_of.h"

namespace olrank {
namespace {

using Variables = std::map<std::string, std::string>;

Shard shard_of(const Variables& variables) {
  return shard_of_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void expect_shard(const Shard& shard, std::int64_t index, std::int64_t count) {
  EXPECT_EQ(shard.index, index);
  EXPECT_EQ(shard.count, count);
}

std::string complaint_about(const std::string& text) {
  return message_of<InvalidArgument>([&] { parse_shard(text); });
}

std::string complaint_of(const Variables& variables) {
  return message_of<InvalidArgument>([&] { shard_of(variables); });
}

TEST(ShardTest, ParsesIndexAndCount) {
  expect_shard(parse_shard("0/1"), 0, 1);
  expect_shard(parse_shard("3/4"), 3, 4);
  expect_shard(parse_shard("999999999999/1000000000000"), 999'999'999'999, 1'000'000'000'000);
}

TEST(ShardTest, HonoursTheStepOfSlurmArrays) {
  const auto task = [](const char* id) {
    return Variables{{"SLURM_ARRAY_TASK_ID", id},
                     {"SLURM_ARRAY_TASK_MIN", "10"},
                     {"SLURM_ARRAY_TASK_COUNT", "4"},
                     {"SLURM_ARRAY_TASK_STEP", "2"}};
  };
  expect_shard(shard_of(task("10")), 0, 4);
  expect_shard(shard_of(task("16")), 3, 4);
  EXPECT_EQ(complaint_of(task("13")),
            "SLURM_ARRAY_TASK_ID 13 is not in the array that starts at 10 with step 2.");
}

TEST(ShardTest, RefusesOtherForms) {
  for (const std::string text : {"", "/", "1", "1/", "/2", "a/b", "1/2/3", " 0/2", "0/2 ", "0 /2", "+0/2",
                                 "0.0/2", "0x0/2", "1e0/2", "0/99999999999999999999", "0-2", "1,2"}) {
    EXPECT_EQ(complaint_about(text), "--shard must have the form I/N, such as 0/4, not '" + text + "'.");
  }
  EXPECT_EQ(complaint_about("4/4"),
            "--shard 4/4: Shard 4 of 4 does not exist; shards are numbered from 0.");
  EXPECT_EQ(complaint_about("0/0"),
            "--shard 0/0: Shard 0 of 0 does not exist; shards are numbered from 0.");
  EXPECT_EQ(complaint_about("-1/4"),
            "--shard -1/4: Shard -1 of 4 does not exist; shards are numbered from 0.");
  EXPECT_EQ(complaint_about("0/-4"),
            "--shard 0/-4: Shard 0 of -4 does not exist; shards are numbered from 0.");
}

TEST(ShardTest, IsTheWholeExperimentWithoutAScheduler) {
  expect_shard(shard_of({}), 0, 1);
  expect_shard(shard_of({{"PATH", "/bin"}}), 0, 1);
}

TEST(ShardTest, CountsSlurmArraysFromTheirFirstTask) {
  const auto slurm = [](const std::string& id, const std::string& first, const std::string& count) {
    return Variables{
        {"SLURM_ARRAY_TASK_ID", id}, {"SLURM_ARRAY_TASK_MIN", first}, {"SLURM_ARRAY_TASK_COUNT", count}};
  };
  expect_shard(shard_of(slurm("0", "0", "4")), 0, 4);
  expect_shard(shard_of(slurm("3", "1", "4")), 2, 4);
  expect_shard(shard_of(slurm("103", "100", "4")), 3, 4);
  EXPECT_EQ(complaint_of(slurm("4", "0", "4")),
            "SLURM_ARRAY_TASK_ID: Shard 4 of 4 does not exist; shards are numbered from 0.");
  EXPECT_EQ(complaint_of(slurm("0", "1", "4")),
            "SLURM_ARRAY_TASK_ID: Shard -1 of 4 does not exist; shards are numbered from 0.");
  EXPECT_EQ(complaint_of({{"SLURM_ARRAY_TASK_ID", "0"}}),
            "The environment variable SLURM_ARRAY_TASK_MIN is required for the shard but not set.");
  EXPECT_EQ(complaint_of({{"SLURM_ARRAY_TASK_ID", "0"}, {"SLURM_ARRAY_TASK_MIN", "0"}}),
            "The environment variable SLURM_ARRAY_TASK_COUNT is required for the shard but not set.");
  EXPECT_EQ(complaint_of(slurm("one", "0", "4")),
            "The environment variable SLURM_ARRAY_TASK_ID must be an integer, not 'one'.");
  EXPECT_EQ(complaint_of(slurm("1", "", "4")),
            "The environment variable SLURM_ARRAY_TASK_MIN must be an integer, not ''.");
}

TEST(ShardTest, KubernetesJobsNeedTheNumberOfShards) {
  expect_shard(shard_of({{"JOB_COMPLETION_INDEX", "2"}, {"OLRANK_SHARDS", "5"}}), 2, 5);
  EXPECT_EQ(complaint_of({{"JOB_COMPLETION_INDEX", "5"}, {"OLRANK_SHARDS", "5"}}),
            "JOB_COMPLETION_INDEX: Shard 5 of 5 does not exist; shards are numbered from 0.");
  EXPECT_EQ(complaint_of({{"JOB_COMPLETION_INDEX", "5"}, {"OLRANK_SHARDS", "many"}}),
            "The environment variable OLRANK_SHARDS must be an integer, not 'many'.");
  expect_shard(shard_of({{"OLRANK_SHARDS", "5"}}), 0, 1);
}

TEST(ShardTest, ReadsRankAndWorldSize) {
  expect_shard(shard_of({{"RANK", "7"}, {"WORLD_SIZE", "8"}}), 7, 8);
  EXPECT_EQ(complaint_of({{"RANK", "8"}, {"WORLD_SIZE", "8"}}),
            "RANK: Shard 8 of 8 does not exist; shards are numbered from 0.");
  expect_shard(shard_of({{"RANK", "7"}}), 0, 1);
}

TEST(ShardTest, PrefersSlurmThenKubernetesThenRank) {
  Variables all = {{"SLURM_ARRAY_TASK_ID", "1"},
                   {"SLURM_ARRAY_TASK_MIN", "0"},
                   {"SLURM_ARRAY_TASK_COUNT", "2"},
                   {"JOB_COMPLETION_INDEX", "2"},
                   {"OLRANK_SHARDS", "3"},
                   {"RANK", "3"},
                   {"WORLD_SIZE", "4"}};
  expect_shard(shard_of(all), 1, 2);
  all.erase("SLURM_ARRAY_TASK_ID");
  expect_shard(shard_of(all), 2, 3);
  all.erase("OLRANK_SHARDS");
  expect_shard(shard_of(all), 3, 4);
}

}  // namespace
}  // namespace olrank
