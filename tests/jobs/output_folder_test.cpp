#include "jobs/output_folder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
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

TEST(OutputFolderTest, KnowsWhetherARunIsAlive) {
  const TemporaryFolder folder;
  EXPECT_FALSE(OutputFolder::in_use(folder / "missing"));
  {
    const OutputFolder whole(folder / "whole", FolderKind::kExperiment);
    EXPECT_TRUE(OutputFolder::in_use(folder / "whole"));
  }
  EXPECT_FALSE(OutputFolder::in_use(folder / "whole"));
  {
    const OutputFolder shard(folder / "parts", FolderKind::kExperiment, {1, 3});
    EXPECT_TRUE(OutputFolder::in_use(folder / "parts"));
    const OutputFolder other(folder / "parts", FolderKind::kExperiment, {2, 3});
  }
  EXPECT_FALSE(OutputFolder::in_use(folder / "parts"));
  // What a killed run leaves is no lock.
  std::filesystem::create_directory(folder / "killed");
  write_file_atomically(folder / "killed" / ".olrank-lock", "process 1");
  EXPECT_FALSE(OutputFolder::in_use(folder / "killed"));
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

}  // namespace
}  // namespace olrank
