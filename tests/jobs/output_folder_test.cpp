#include "jobs/output_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/text/text_table.h"
#include "jobs/job_slots.h"
#include "jobs/run_progress.h"
#include "tests/core/metrics/small_data.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

bool accepted(const fs::path& folder, FolderKind kind = FolderKind::kExperiment) {
  return message_of<InvalidArgument>([&] { OutputFolder::require_own(folder, kind); }) == kNoError;
}

TEST(OutputFolderTest, BelongsToOlrankIfItsManifestSaysSo) {
  const TemporaryFolder folder;
  EXPECT_TRUE(accepted(folder / "missing"));
  make_folder(folder / "a");
  EXPECT_TRUE(accepted(folder / "a"));
  write_file_atomically(folder / "a/.olrank-lock", "a killed start's");
  write_file_atomically(folder / "a/.trace.jsonl.tmp-17-0", "a killed start's");
  EXPECT_TRUE(accepted(folder / "a"));
  write_file_atomically(folder / "a/notes.txt", "mine");
  EXPECT_FALSE(accepted(folder / "a"));
  for (const char* foreign : {"{}", "[1]", "no JSON", R"({"version": "1.0", "name": "a web page's"})",
                              R"({"version": 1, "commit": "", "compiler": "", "command": ""})"}) {
    write_file_atomically(folder / "a/manifest.json", foreign);
    EXPECT_FALSE(accepted(folder / "a")) << foreign;
  }
  EXPECT_FALSE(accepted(folder / "a/notes.txt"));
  fs::remove(folder / "a/manifest.json");
  fs::remove(folder / "a/notes.txt");
  OutputFolder(folder / "a", FolderKind::kExperiment).write_manifest("test");
  write_file_atomically(folder / "a/notes.txt", "mine");
  EXPECT_TRUE(accepted(folder / "a"));
}

TEST(OutputFolderTest, KindsDoNotMixButReportsGoAnywhere) {
  const TemporaryFolder folder;
  OutputFolder(folder / "tuning", FolderKind::kTuning).write_manifest("test");
  EXPECT_FALSE(accepted(folder / "tuning"));
  EXPECT_TRUE(accepted(folder / "tuning", FolderKind::kTuning));
  EXPECT_TRUE(accepted(folder / "tuning", FolderKind::kReport));
  make_report_folder(folder / "report", "test");
  make_report_folder(folder / "report", "test");
  EXPECT_FALSE(accepted(folder / "report"));
  write_file_atomically(folder / "mine", "mine");
  EXPECT_THROW(make_report_folder(folder.path(), "test"), InvalidArgument);
}

TEST(OutputFolderTest, LeavesNoEmptyFolders) {
  const TemporaryFolder folder;
  { const OutputFolder out(folder / "a/b/c/", FolderKind::kExperiment); }
  EXPECT_FALSE(fs::exists(folder / "a"));
  make_folder(folder / "a");
  { const OutputFolder out(folder / "a/b", FolderKind::kExperiment, {0, 2}); }
  EXPECT_FALSE(fs::exists(folder / "a/b"));
  EXPECT_TRUE(fs::exists(folder / "a"));
  { OutputFolder(folder / "a/b", FolderKind::kExperiment).write_manifest("test"); }
  EXPECT_TRUE(fs::exists(folder / "a/b"));
}

TEST(OutputFolderTest, ListsTrialsOfEarlierRunsWhileTheyExist) {
  const TemporaryFolder folder;
  const OutputFolder out(folder.path(), FolderKind::kExperiment);
  const TrialIdentity one{"full", "perfect", 1, 1};
  const TrialIdentity two{"full", "perfect", 1, 2};
  EXPECT_TRUE(out.listed_trials().empty());
  out.write_manifest(ordered_json::object(), "first", {one});
  make_folder(folder.path() / one.path());
  out.write_manifest(ordered_json::object(), "second", {two});
  EXPECT_EQ(out.listed_trials(), (std::set<TrialIdentity>{one, two}));
  fs::remove_all(folder / "trials");
  out.write_manifest(ordered_json::object(), "third", {two});
  EXPECT_EQ(out.listed_trials(), (std::set<TrialIdentity>{two}));
}

TEST(OutputFolderTest, ListsNothingOutsideItsTrials) {
  const TemporaryFolder folder;
  const OutputFolder out(folder.path(), FolderKind::kExperiment);
  out.write_manifest("test");
  auto manifest = ordered_json::parse(read_file(folder / "manifest.json"));
  manifest["trial_folders"] = {
      "trials/../../fold1/seed1", "/etc/a/b/fold1/seed1",  "trials/a/b/fold01/seed1", "trials/a/b",
      "trials/a/./fold1/seed1",   "other/a/b/fold1/seed1", "trials/a/b/fold2/seed3"};
  write_file_atomically(folder / "manifest.json", manifest.dump());
  EXPECT_EQ(out.listed_trials(), (std::set<TrialIdentity>{{"a", "b", 2, 3}}));
  manifest["trial_folders"] = {1};
  write_file_atomically(folder / "manifest.json", manifest.dump());
  EXPECT_TRUE(out.listed_trials().empty());
}

TEST(OutputFolderTest, FindsTheTrialsOfManifestsWithoutAList) {
  const TemporaryFolder folder;
  const OutputFolder out(folder.path(), FolderKind::kExperiment);
  auto manifest =
      ordered_json::parse(R"({"version": "0.1.0", "commit": "c", "compiler": "g", "command": "olrank run",
    "config": {"ranker": [{"name": "full"}], "clicks": {"models": ["perfect", "mine"]}, "data": {"folds": [2]},
               "protocol": {"seeds": [3]}}})");
  write_file_atomically(folder / "manifest.json", manifest.dump());
  EXPECT_EQ(out.listed_trials(),
            (std::set<TrialIdentity>{{"full", "mine", 2, 3}, {"full", "perfect", 2, 3}}));
  manifest["recorded"] = true;
  write_file_atomically(folder / "manifest.json", manifest.dump());
  EXPECT_EQ(out.listed_trials(), (std::set<TrialIdentity>{{"full", "recorded", 2, 3}}));
}

using Variables = std::map<std::string, std::string>;

/// "I/N", or what is said of the variables.
std::string shard_of(const Variables& variables) {
  std::string shard;
  const std::string refusal = message_of<InvalidArgument>([&] {
    const Shard found = shard_of_environment([&](const char* name) -> const char* {
      const auto variable = variables.find(name);
      return variable == variables.end() ? nullptr : variable->second.c_str();
    });
    shard = fmt::format("{}/{}", found.index, found.count);
  });
  return refusal == kNoError ? shard : refusal;
}

std::string parsed_shard(const std::string& text) {
  std::string shard;
  const std::string refusal = message_of<InvalidArgument>([&] {
    const Shard found = parse_shard(text);
    shard = fmt::format("{}/{}", found.index, found.count);
  });
  return refusal == kNoError ? shard : refusal;
}

TEST(ShardTest, HasTheFormIndexOfCount) {
  for (const std::string text : {"0/1", "3/4", "999999999999/1000000000000"})
    EXPECT_EQ(parsed_shard(text), text);
  for (const std::string text : {"", "/", "1", "1/", "/2", "a/b", "1/2/3", " 0/2", "0/2 ", "0 /2", "+0/2",
                                 "0.0/2", "0x0/2", "1e0/2", "0/99999999999999999999", "0-2", "1,2"})
    EXPECT_EQ(parsed_shard(text), "--shard must have the form I/N, such as 0/4, not '" + text + "'.");
  for (const auto& [text, named] : {std::pair{"4/4", "4 of 4"}, std::pair{"0/0", "0 of 0"},
                                    std::pair{"-1/4", "-1 of 4"}, std::pair{"0/-4", "0 of -4"}})
    EXPECT_EQ(parsed_shard(text), fmt::format("--shard {}: Shard {} does not exist; shards are numbered "
                                              "from 0.",
                                              text, named));
}

TEST(ShardTest, IsThatOfTheScheduler) {
  const auto slurm = [](const char* id, const char* first, const char* count, const char* step = nullptr) {
    Variables variables = {
        {"SLURM_ARRAY_TASK_ID", id}, {"SLURM_ARRAY_TASK_MIN", first}, {"SLURM_ARRAY_TASK_COUNT", count}};
    if (step != nullptr) variables["SLURM_ARRAY_TASK_STEP"] = step;
    return variables;
  };
  const auto jobs = [](const char* index, const char* count) {
    return Variables{{"JOB_COMPLETION_INDEX", index}, {"OLRANK_SHARDS", count}};
  };
  Variables all = {{"RANK", "3"}, {"WORLD_SIZE", "4"}};
  all.merge(jobs("2", "3"));
  Variables with_slurm = all;
  with_slurm.merge(slurm("1", "0", "2"));
  Variables without_count = all;
  without_count.erase("OLRANK_SHARDS");
  const std::pair<Variables, std::string> rows[] = {
      {{}, "0/1"},
      {{{"PATH", "/bin"}}, "0/1"},
      {slurm("0", "0", "4"), "0/4"},
      {slurm("3", "1", "4"), "2/4"},
      {slurm("103", "100", "4"), "3/4"},
      {slurm("10", "10", "4", "2"), "0/4"},
      {slurm("16", "10", "4", "2"), "3/4"},
      {slurm("13", "10", "4", "2"),
       "SLURM_ARRAY_TASK_ID 13 is not in the array that starts at 10 with step 2."},
      {slurm("4", "0", "4"),
       "SLURM_ARRAY_TASK_ID: Shard 4 of 4 does not exist; shards are numbered from 0."},
      {slurm("0", "1", "4"),
       "SLURM_ARRAY_TASK_ID: Shard -1 of 4 does not exist; shards are numbered from 0."},
      {{{"SLURM_ARRAY_TASK_ID", "0"}},
       "The environment variable SLURM_ARRAY_TASK_MIN is required for the shard but not set."},
      {{{"SLURM_ARRAY_TASK_ID", "0"}, {"SLURM_ARRAY_TASK_MIN", "0"}},
       "The environment variable SLURM_ARRAY_TASK_COUNT is required for the shard but not set."},
      {slurm("one", "0", "4"),
       "The environment variable SLURM_ARRAY_TASK_ID must be an integer, not 'one'."},
      {slurm("1", "", "4"), "The environment variable SLURM_ARRAY_TASK_MIN must be an integer, not ''."},
      {jobs("2", "5"), "2/5"},
      {jobs("5", "5"), "JOB_COMPLETION_INDEX: Shard 5 of 5 does not exist; shards are numbered from 0."},
      {jobs("5", "many"), "The environment variable OLRANK_SHARDS must be an integer, not 'many'."},
      {{{"OLRANK_SHARDS", "5"}}, "0/1"},
      {{{"RANK", "7"}, {"WORLD_SIZE", "8"}}, "7/8"},
      {{{"RANK", "8"}, {"WORLD_SIZE", "8"}},
       "RANK: Shard 8 of 8 does not exist; shards are numbered from 0."},
      {{{"RANK", "7"}}, "0/1"},
      {with_slurm, "1/2"},
      {all, "2/3"},
      {without_count, "3/4"}};
  for (const auto& [variables, expected] : rows) EXPECT_EQ(shard_of(variables), expected);
}

/// A manual clock, and what was shown.
struct Stage {
  RunProgress::Clock::time_point now{};
  std::vector<std::string> status;
  std::vector<std::string> lines;

  RunProgress::Output output(ProgressStyle style, int columns = 80) {
    return {.style = style,
            .columns = columns,
            .status = [this](std::string_view text) { status.emplace_back(text); },
            .line = [this](std::string_view text) { lines.emplace_back(text); },
            .now = [this] { return now; }};
  }
  void pass(double seconds) {
    now += std::chrono::duration_cast<RunProgress::Clock::duration>(std::chrono::duration<double>(seconds));
  }
};

std::vector<TrialIdentity> two_trials() {
  return {{"olranknet-full", "perfect", 1, 1}, {"olranknet-full", "perfect", 1, 2}};
}

CurvePoint point_at(std::int64_t round) {
  CurvePoint point;
  point.round = round;
  point.offline_ndcg = 0.4321;
  return point;
}

/// Half of the first trial, at a second a round.
void play_half(Stage& stage, RunProgress& progress) {
  progress.started(0, 0, 0.0);
  for (int round = 1; round <= 50; ++round) {
    stage.pass(1.0);
    if (round == 1) progress.evaluated(0, point_at(0));
    progress.played(0, round);
  }
}

TEST(RunProgress, LinesNameTheTrialItsFigureAndTheTimeLeft) {
  Stage stage;
  RunProgress progress(two_trials(), 100, 1'000'000, 1, stage.output(ProgressStyle::kLines));
  play_half(stage, progress);
  ASSERT_EQ(stage.lines.size(), 10U);  // one in five seconds
  EXPECT_EQ(stage.lines.back(),
            "25%, 0 of 2 trials finished, 2m30s left; seed 1, round 0 of 100: ndcg@10 0.4321");
}

TEST(RunProgress, ABarKeepsToItsColumns) {
  for (const int columns : {10, 30, 48, 80, 200}) {
    Stage stage;
    RunProgress progress(two_trials(), 100, 1'000'000, 1, stage.output(ProgressStyle::kBar, columns));
    play_half(stage, progress);
    ASSERT_EQ(stage.status.size(), 50U);
    for (const std::string& text : stage.status) EXPECT_LT(columns_of(text), columns) << text;
  }
}

TEST(RunProgress, ABarIsRedrawnAtMostFiveTimesASecond) {
  Stage stage;
  RunProgress progress(two_trials(), 100, 1'000'000, 1, stage.output(ProgressStyle::kBar));
  progress.started(0, 0, 0.0);
  for (int round = 1; round <= 100; ++round) {
    stage.pass(0.01);
    progress.played(0, round);
  }
  EXPECT_LE(stage.status.size(), 5U);
  EXPECT_EQ(stage.status.back().find("[####-----] 50%"), 0U) << stage.status.back();
}

TEST(RunProgress, SaysHowLongItTook) {
  Stage stage;
  RunProgress progress(two_trials(), 100, 1'000'000, 1, stage.output(ProgressStyle::kLines));
  progress.finished_before(1);
  play_half(stage, progress);
  for (int round = 51; round <= 100; ++round) {
    stage.pass(1.0);
    progress.played(0, round);
  }
  progress.finished(0, 100.0);
  progress.end(0);
  EXPECT_EQ(stage.lines.back(), "100%, 2 of 2 trials finished, took 1m40s");
}

TEST(RunProgress, SilentStyleShowsNothing) {
  Stage stage;
  RunProgress progress(two_trials(), 100, 1'000'000, 1, stage.output(ProgressStyle::kSilent));
  play_half(stage, progress);
  progress.end(0);
  EXPECT_TRUE(stage.lines.empty());
  EXPECT_TRUE(stage.status.empty());
}

std::shared_ptr<const FoldData> fold_named(std::int64_t fold) {
  const Dataset empty = make_dataset({});
  return std::make_shared<const FoldData>(
      FoldData{{empty, empty, 0}, std::to_string(fold), {}, std::nullopt});
}

TEST(FoldCacheTest, LoadsFoldOnceWhileInUse) {
  std::vector<std::int64_t> loaded;
  FoldCache cache([&](std::int64_t fold) {
    loaded.push_back(fold);
    return fold_named(fold);
  });
  auto one = cache.get(1);
  EXPECT_EQ(cache.get(1), one);
  const auto two = cache.get(2);
  EXPECT_EQ(two->fingerprint, "2");
  EXPECT_EQ(cache.get(1), one);  // kept by its user
  EXPECT_EQ(loaded, (std::vector<std::int64_t>{1, 2}));
  // The latest one stays without a user; an earlier one does not.
  one.reset();
  EXPECT_EQ(cache.get(1)->fingerprint, "1");
  EXPECT_EQ(loaded.size(), 2U);
  cache.get(3);
  cache.get(1);
  EXPECT_EQ(loaded, (std::vector<std::int64_t>{1, 2, 3, 1}));
}

TEST(FoldCacheTest, ThreadsShareOneLoad) {
  std::atomic<int> loads = 0;
  FoldCache cache([&](std::int64_t fold) {
    ++loads;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return fold_named(fold);
  });
  std::vector<std::shared_ptr<const FoldData>> got(4);
  std::vector<std::thread> threads;
  for (auto& one : got) threads.emplace_back([&] { one = cache.get(5); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(loads, 1);
  for (const auto& one : got) EXPECT_EQ(one, got[0]);
}

TEST(FoldCacheTest, RetriesFailedLoad) {
  bool fails = true;
  FoldCache cache([&](std::int64_t fold) {
    if (fails) throw std::runtime_error("no such file");
    return fold_named(fold);
  });
  EXPECT_THROW(cache.get(1), std::runtime_error);
  fails = false;
  EXPECT_EQ(cache.get(1)->fingerprint, "1");
}

}  // namespace
}  // namespace olrank
