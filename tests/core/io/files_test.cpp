#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

std::size_t entries(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(AtomicFileTest, AppearsOnlyOnCommit) {
  const TemporaryFolder folder;
  const auto target = folder / "result.json";
  {
    AtomicFile file(target);
    file.write("hello ");
    file.write(std::string(100'000, 'x'));
    EXPECT_FALSE(std::filesystem::exists(target));
    file.commit();
  }
  EXPECT_EQ(read_file(target), "hello " + std::string(100'000, 'x'));
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(ReadFileTest, ReadsNoMoreThanAllowed) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "ten", "0123456789");
  EXPECT_EQ(read_file(folder / "ten", 10), "0123456789");
  EXPECT_NE(message_of<IoError>([&] { read_file(folder / "ten", 9); }).find("larger than 9 bytes"),
            std::string::npos);
  EXPECT_NE(message_of<IoError>([] { read_file("/dev/zero", 1000); }).find("from a pipe or device"),
            std::string::npos);
  EXPECT_THROW(read_file(folder.path()), IoError);
}

TEST(AtomicFileTest, KeepsEarlierFileWhenAbandoned) {
  const TemporaryFolder folder;
  const auto target = folder / "result.json";
  write_file_atomically(target, "first");
  {
    AtomicFile file(target);
    file.write("half of the sec");
  }
  EXPECT_EQ(read_file(target), "first");
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(AtomicFileTest, LeavesDevicesPipesAndLinksInPlace) {
  const TemporaryFolder folder;
  const auto link = folder / "link";
  std::filesystem::create_symlink("/dev/null", link);
  write_file_atomically(link, "gone");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_TRUE(std::filesystem::is_symlink(link));

  const auto pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string arrived;
  std::thread reader([&] { arrived = read_file(pipe); });
  write_file_atomically(pipe, "through the pipe");
  reader.join();
  EXPECT_EQ(arrived, "through the pipe");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));

  const auto file = folder / "file";
  const auto to_file = folder / "to file";
  write_file_atomically(file, "first");
  std::filesystem::create_symlink("file", to_file);
  write_file_atomically(to_file, "second");
  EXPECT_TRUE(std::filesystem::is_symlink(to_file));
  EXPECT_EQ(read_file(file), "second");

  const auto nowhere = folder / "nowhere";
  std::filesystem::create_symlink("missing", nowhere);
  EXPECT_NE(message_of<IoError>([&] { AtomicFile(nowhere).commit(); }).find("leads to no file"),
            std::string::npos);
  EXPECT_THROW(AtomicFile("/dev/full").write("x"), IoError);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(AtomicFileTest, ConcurrentWritersDoNotConflict) {
  const TemporaryFolder folder;
  const auto target = folder / "result.json";
  AtomicFile one(target);
  AtomicFile two(target);
  one.write("one");
  two.write("two");
  one.commit();
  two.commit();
  EXPECT_EQ(read_file(target), "two");
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(AtomicFileTest, ErrorNamesUnwritableFile) {
  const TemporaryFolder folder;
  EXPECT_NE(message_of<IoError>([&] {
              write_file_atomically(folder / "missing" / "x", "text");
            }).find("missing/x"),
            std::string::npos);
  EXPECT_THROW(read_file(folder / "absent"), IoError);
}

TEST(AtomicFileTest, ReportsFullDisk) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "this system has no /dev/full";
  const TemporaryFolder folder;
  const auto target = folder / "result.json";
  write_file_atomically(target, "first");
  const int next = ::dup(full);  // the lowest free descriptor, which the file's own will be
  ::close(next);
  {
    AtomicFile file(target);
    ASSERT_EQ(::dup2(full, next), next);  // from here on its bytes go where no room is
    ::close(full);
    EXPECT_NE(
        message_of<IoError>([&] { file.write("second"); }).find("No space left on device. Free some space"),
        std::string::npos);
  }
  EXPECT_EQ(read_file(target), "first");
  EXPECT_EQ(entries(folder.path()), 1U);
}

/// Sets an environment variable for one test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    if (value != nullptr)
      setenv(name, value, 1);
    else
      unsetenv(name);
  }
  ~Environment() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(CacheFolderTest, FollowsXdgBaseDirectorySpecification) {
  const Environment home("HOME", "/home/u");
  {
    const Environment cache("XDG_CACHE_HOME", "/c");
    EXPECT_EQ(user_cache_folder(), "/c/olrank");
  }
  {
    const Environment cache("XDG_CACHE_HOME", "relative");
    EXPECT_EQ(user_cache_folder(), "/home/u/.cache/olrank");
  }
  const Environment cache("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(user_cache_folder(), "/home/u/.cache/olrank");
  const Environment homeless("HOME", nullptr);
  EXPECT_EQ(user_cache_folder(), "");
}

namespace fs = std::filesystem;

constexpr std::string_view kOurs[] = {"curve", "model"};

TEST(FolderTest, KnowsTheNamesThatFoldersOfResultsMayHave) {
  for (const char* name : {"a", "pairrank-2", "lambda=0.1+b", "_x"})
    EXPECT_TRUE(is_folder_name(name)) << name;
  for (const char* name : {"", ".a", "..", "a/b", "a b", "a\n", "ü"})
    EXPECT_FALSE(is_folder_name(name)) << name;
  EXPECT_TRUE(is_folder_name(std::string(100, 'a')));
  EXPECT_FALSE(is_folder_name(std::string(101, 'a')));
}

TEST(FolderTest, RemovesNamedFilesAndEmptyFoldersOnly) {
  const TemporaryFolder root;
  for (const char* folder : {"a/b", "a/c", "d/e"}) make_folder(root / folder);
  for (const char* file : {"a/b/curve", "a/b/.model.tmp-12-0", "a/c/curve", "d/e/curve", "d/e/.curve.tmp-1",
                           "d/e/.thesis.tmp-1-2", "d/e/curves"})
    write_file_atomically(root / file, "text");
  remove_files(root.path(), "a/b", kOurs);
  EXPECT_FALSE(fs::exists(root / "a/b"));
  EXPECT_TRUE(fs::exists(root / "a/c/curve"));
  remove_files(root.path(), "a/c", kOurs);
  EXPECT_FALSE(fs::exists(root / "a"));
  remove_files(root.path(), "d/e", kOurs);
  EXPECT_FALSE(fs::exists(root / "d/e/curve"));
  for (const char* foreign : {"d/e/.curve.tmp-1", "d/e/.thesis.tmp-1-2", "d/e/curves"})
    EXPECT_TRUE(fs::exists(root / foreign)) << foreign;
  remove_files(root.path(), "x/y", kOurs);  // is not there
  EXPECT_TRUE(fs::exists(root.path()));
}

TEST(FolderTest, FollowsNoSymbolicLinkWhenItRemoves) {
  const TemporaryFolder root;
  make_folder(root / "elsewhere/b");
  make_folder(root / "a");
  write_file_atomically(root / "elsewhere/b/curve", "mine");
  fs::create_symlink(root / "elsewhere/b", root / "a/b");
  EXPECT_THROW(remove_files(root.path(), "a/b", kOurs), IoError);
  EXPECT_EQ(symbolic_link_below(root.path(), "a/b/c"), root / "a/b");
  EXPECT_EQ(symbolic_link_below(root.path(), "elsewhere/b"), std::nullopt);
  // A file that is a link goes, what it points to stays.
  fs::create_symlink(root / "elsewhere/b/curve", root / "a/curve");
  remove_files(root.path(), "a", kOurs);
  EXPECT_FALSE(fs::is_symlink(root / "a/curve"));
  EXPECT_EQ(read_file(root / "elsewhere/b/curve"), "mine");
}

}  // namespace
}  // namespace olrank
