#include "core/io/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "core/error.h"
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

}  // namespace
}  // namespace olrank
