#include "serve/impression_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

class ImpressionFileTest : public ::testing::Test {
 protected:
  static OpenList list(std::int64_t time, const std::string& id = "0123456789abcdef-1") {
    OpenList made;
    FeedbackRecord& record = made.record;
    record.impression = id;
    record.query = "ja\"cket\n";
    record.docs = {{"a", false}, {"7", true}, {"", false}};
    record.has_unshown = true;
    record.groups = {DocGroup::kA, DocGroup::kB, DocGroup::kA};
    record.time = time;
    record.snapshot = 12;
    record.explored = true;
    record.propensity = {0.5, 1.0 / 3.0};
    record.incumbent = {{"7", true}, {"a", false}};
    record.experiment = "0d2ecefdec8a";
    record.arm = "learner";
    record.bucket = 77;
    record.teams = "AB";
    record.candidate = {{"a", false}};
    record.columns = 2;
    record.inputs = {0.1F, -2.0F, 3e-30F, 4.0F, 5.0F, 6.0F};
    made.shown = 2;
    return made;
  }
  ImpressionFile::Settings settings() const {
    ImpressionFile::Settings settings;
    settings.folder = folder_.path();
    settings.age_ms = 1000;
    return settings;
  }
  static void append(ImpressionFile& file, const OpenList& list) {
    file.append(list.record.impression, ImpressionFile::encoded(list.record, list.shown), list.record.time);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_.path())) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }

  TemporaryFolder folder_;
};

TEST_F(ImpressionFileTest, GivesBackAllOfAList) {
  OpenList by_version = list(160, "0123456789abcdef-3");
  by_version.record.inputs.clear();
  by_version.record.columns = 0;
  by_version.record.rest = {{"8", true}};
  by_version.record.versions = {3, 0, 1, 12};
  by_version.record.given = {{1, 0, -0.5F}, {3, 1, 3e-40F}};
  {
    ImpressionFile file(settings(), 100, 100);
    append(file, list(100));
    append(file, list(150, "0123456789abcdef-2"));
    append(file, by_version);
  }
  const ImpressionFile again(settings(), 200, 200);
  const std::vector<OpenList> lists = again.take_up(200);
  ASSERT_EQ(lists.size(), 3);
  EXPECT_EQ(lists[2].record, by_version.record);
  EXPECT_EQ(lists[0].record, list(100).record);
  EXPECT_EQ(lists[0].shown, 2);
  EXPECT_EQ(lists[1].record.impression, "0123456789abcdef-2");
  // The first one has expired.
  EXPECT_EQ(again.take_up(1101).size(), 2);
}

TEST_F(ImpressionFileTest, OneDamagedListCostsNoOther) {
  {
    ImpressionFile file(settings(), 0, 0);
    for (int i = 1; i <= 5; ++i) append(file, list(i, fmt::format("0123456789abcdef-{}", i)));
  }
  const fs::path path = files().front();
  const std::string whole = read_file(path);
  const std::size_t each = whole.size() / 5;
  const auto survivors = [&](const std::string& bytes) {
    write_file_atomically(path, bytes);
    std::string ids;
    for (const OpenList& one : ImpressionFile(settings(), 10, 10).take_up(10))
      ids += one.record.impression.back();
    return ids;
  };
  EXPECT_EQ(survivors(whole), "12345");
  // Every bit of the second list, so of its size and of its checksum, too.
  for (std::size_t bit = 0; bit < 8 * each; ++bit) {
    const ExpectedWarnings warnings;
    std::string flipped = whole;
    flipped[each + bit / 8] = static_cast<char>(flipped[each + bit / 8] ^ (1 << bit % 8));
    ASSERT_EQ(survivors(flipped), "1345") << bit;
    ASSERT_EQ(warnings.count("impressions-000001.bin: Skipped 1 damaged place"), 1) << bit;
  }
  const ExpectedWarnings warnings;
  std::string flipped = whole;
  for (const std::size_t at : {std::size_t{20}, 2 * each + 20, 5 * each - 1}) flipped[at] ^= 1;
  EXPECT_EQ(survivors(flipped), "24");
  EXPECT_EQ(warnings.count("Skipped 3 damaged places"), 1);
  EXPECT_EQ(survivors(whole.substr(0, each) + whole.substr(each + 7)), "1345");
  for (const std::size_t kept : {whole.size() - 1, whole.size() - 40, 4 * each + 5})
    EXPECT_EQ(survivors(whole.substr(0, kept)), "1234") << kept;
  EXPECT_EQ(survivors("some other file"), "");
}

TEST_F(ImpressionFileTest, AFullDiskMakesNoMoreFilesAndLosesOnlyItsOwnLists) {
  ImpressionFile file(settings(), 0, 0);
  append(file, list(1));
  const auto each = fs::file_size(files().front());
  const ExpectedWarnings warnings;
  {
    const FullDisk full(each + 50);
    for (int i = 2; i <= 100; ++i) append(file, list(i, fmt::format("0123456789abcdef-{}", i)));
  }
  append(file, list(101, "0123456789abcdef-101"));
  ASSERT_EQ(files().size(), 1);
  EXPECT_EQ(fs::file_size(files().front()), 2 * each + 2);
  EXPECT_EQ(warnings.messages().size(), 1);
  EXPECT_EQ(ImpressionFile(settings(), 200, 200).take_up(200).size(), 2);
}

TEST_F(ImpressionFileTest, AClockThatIsAheadRemovesNoOtherLists) {
  {
    ImpressionFile file(settings(), 0, 0);
    append(file, list(10));
    // An hour ahead and back again, while a second passes.
    file.append("0123456789abcdef-2", ImpressionFile::encoded(list(3'600'200).record, 2), 200);
    file.append("0123456789abcdef-3", ImpressionFile::encoded(list(400).record, 2), 400);
  }
  EXPECT_EQ(files().size(), 3);
  EXPECT_EQ(ImpressionFile(settings(), 500, 7).take_up(500).size(), 3);
  EXPECT_EQ(files().size(), 3);
}

TEST_F(ImpressionFileTest, RefusesBytesThatAreNoList) {
  const OpenList one = list(5);
  const std::string id("\x02\0\0\0id", 6);
  const std::string bytes = id + ImpressionFile::encoded(one.record, one.shown);
  EXPECT_TRUE(ImpressionFile::decoded(bytes));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(ImpressionFile::decoded(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(ImpressionFile::decoded(bytes + "x"));
  FeedbackRecord named = one.record;  // names come last, so that lists without them are as before
  named.feature_names = "[\"a\"]";
  const std::string longer = id + ImpressionFile::encoded(named, one.shown);
  EXPECT_TRUE(longer.starts_with(bytes));
  ASSERT_TRUE(ImpressionFile::decoded(longer));
  EXPECT_EQ(ImpressionFile::decoded(longer)->record.feature_names, named.feature_names);
  EXPECT_FALSE(ImpressionFile::decoded(id + ImpressionFile::encoded(one.record, 4)));
}

TEST_F(ImpressionFileTest, RemovesFilesWhoseListsHaveExpired) {
  ImpressionFile file(settings(), 0, 0);
  for (std::int64_t time = 0; time < 5000; time += 10) append(file, list(time));
  // An eighth of a life each, and one more that waits for its last list to expire.
  EXPECT_LE(files().size(), 10);
  EXPECT_GE(files().size(), 8);
  EXPECT_GE(ImpressionFile(settings(), 4990, 4990).take_up(4990).size(), 100);
}

TEST_F(ImpressionFileTest, StaysWithinItsBytes) {
  ImpressionFile::Settings small = settings();
  small.bytes = 20'000;
  ImpressionFile file(small, 0, 0);
  for (std::int64_t time = 0; time < 1000; ++time) append(file, list(time));
  std::uintmax_t bytes = 0;
  for (const fs::path& path : files()) bytes += fs::file_size(path);
  // All but the file that is written to, with an eighth of the lists.
  EXPECT_LE(bytes, 20'000 + 126 * 400);
}

TEST_F(ImpressionFileTest, SaysOnceThatNothingCanBeWritten) {
  ImpressionFile::Settings guarded = settings();
  guarded.guard = [] { throw IoError("The lock is gone."); };
  ImpressionFile file(guarded, 0, 0);
  const ExpectedWarnings warnings;
  append(file, list(1));
  append(file, list(2));
  EXPECT_EQ(warnings.count("will not survive a restart: The lock is gone."), 1);
  EXPECT_TRUE(files().empty());
}

TEST_F(ImpressionFileTest, SetsAsideWhatAnEarlierStateHad) {
  {
    ImpressionFile file(settings(), 0, 0);
    append(file, list(1));
  }
  ImpressionFile::Settings over = settings();
  over.starts_over = true;
  EXPECT_TRUE(ImpressionFile(over, 2, 2).take_up(2).empty());
  ASSERT_EQ(files().size(), 1);
  EXPECT_TRUE(files().front().string().ends_with(".set-aside"));
}

}  // namespace
}  // namespace olrank
