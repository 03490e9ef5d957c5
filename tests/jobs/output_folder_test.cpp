#include "jobs/output_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/text/text_table.h"
#include "jobs/run_progress.h"
#include "jobs/study.h"
#include "tests/core/metrics/small_data.h"
#include "tests/support/cases.h"
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
  manifest.erase("trial_folders");
  write_file_atomically(folder / "manifest.json", manifest.dump());
  EXPECT_TRUE(out.listed_trials().empty());
}

/// "I/N", or what is said against it.
std::string shard_text(const std::function<Shard()>& find) {
  std::string shard;
  const std::string refusal = message_of<InvalidArgument>([&] {
    const Shard found = find();
    shard = fmt::format("{}/{}", found.index, found.count);
  });
  return refusal == kNoError ? shard : refusal;
}

TEST(ShardTest, HasTheFormIndexOfCount) {
  expect_cases("jobs/output_folder_test.txt", "shards",
               [](const std::string& text) { return shard_text([&] { return parse_shard(text); }); });
}

TEST(ShardTest, IsThatOfTheScheduler) {
  expect_cases("jobs/output_folder_test.txt", "variables", [](const std::string& text) {
    std::istringstream words(text);
    std::map<std::string, std::string> variables;
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      variables[word.substr(0, equals)] = word.substr(equals + 1);
    }
    return shard_text([&] {
      return shard_of_environment([&](const char* name) -> const char* {
        const auto variable = variables.find(name);
        return variable == variables.end() ? nullptr : variable->second.c_str();
      });
    });
  });
}

/// The progress of two trials by a manual clock, and what was shown.
struct Stage {
  explicit Stage(ProgressStyle style, int columns = 80)
      : progress({{"olranknet-full", "perfect", 1, 1}, {"olranknet-full", "perfect", 1, 2}}, 100, 1'000'000,
                 1, output(style, columns)) {}

  RunProgress::Clock::time_point now{};
  std::vector<std::string> status;
  std::vector<std::string> lines;

  RunProgress progress;

  RunProgress::Output output(ProgressStyle style, int columns) {
    return {.style = style,
            .columns = columns,
            .status = [this](std::string_view text) { status.emplace_back(text); },
            .line = [this](std::string_view text) { lines.emplace_back(text); },
            .now = [this] { return now; }};
  }
  void play(int from, int to, double seconds_of_round) {
    CurvePoint start;
    start.offline_ndcg = 0.4321;
    for (int round = from; round <= to; ++round) {
      now += std::chrono::duration_cast<RunProgress::Clock::duration>(
          std::chrono::duration<double>(seconds_of_round));
      if (round == 1) progress.evaluated(0, start);
      progress.played(0, round);
    }
  }
  /// Half of the first trial, at a second a round.
  void play_half() {
    progress.started(0, 0, 0.0);
    play(1, 50, 1.0);
  }
};

TEST(RunProgress, LinesNameTheTrialItsFigureAndTheTimeLeft) {
  Stage stage(ProgressStyle::kLines);
  stage.play_half();
  ASSERT_EQ(stage.lines.size(), 10U);  // one in five seconds
  EXPECT_EQ(stage.lines.back(),
            "25%, 0 of 2 trials finished, 2m30s left; seed 1, round 0 of 100: ndcg@10 0.4321");
}

TEST(RunProgress, ABarKeepsToItsColumns) {
  for (const int columns : {10, 30, 48, 80, 200}) {
    Stage stage(ProgressStyle::kBar, columns);
    stage.play_half();
    ASSERT_EQ(stage.status.size(), 50U);
    for (const std::string& text : stage.status) EXPECT_LT(columns_of(text), columns) << text;
  }
}

TEST(RunProgress, ABarIsRedrawnAtMostFiveTimesASecond) {
  Stage stage(ProgressStyle::kBar);
  stage.progress.started(0, 0, 0.0);
  stage.play(1, 100, 0.01);
  EXPECT_LE(stage.status.size(), 5U);
  EXPECT_EQ(stage.status.back().find("[####-----] 50%"), 0U) << stage.status.back();
}

TEST(RunProgress, SaysHowLongItTook) {
  Stage stage(ProgressStyle::kLines);
  stage.progress.finished_before(1);
  stage.play_half();
  stage.play(51, 100, 1.0);
  stage.progress.finished(0, 100.0);
  stage.progress.end(0);
  EXPECT_EQ(stage.lines.back(), "100%, 2 of 2 trials finished, took 1m40s");
}

TEST(RunProgress, SilentStyleShowsNothing) {
  Stage stage(ProgressStyle::kSilent);
  stage.play_half();
  stage.progress.end(0);
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
