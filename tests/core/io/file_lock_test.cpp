#include "core/io/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "core/error.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

using Mode = FileLock::Mode;
using Outcome = FileLock::Outcome;

TEST(FileLockTest, OneHolderAtATimeAndNoFileAfterTheLast) {
  const TemporaryFolder folder;
  const auto file = folder / "lock";
  FileLock one;
  FileLock two;
  EXPECT_EQ(one.take(file, Mode::kAlone, "process 1"), Outcome::kTaken);
  EXPECT_EQ(two.take(file, Mode::kAlone, "process 2"), Outcome::kHeld);
  EXPECT_EQ(two.holder(), "process 1");
  one.release();
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(two.take(file, Mode::kAlone, "process 2"), Outcome::kTaken);
}

TEST(FileLockTest, EqualNotesShare) {
  const TemporaryFolder folder;
  const auto file = folder / "lock";
  FileLock one;
  FileLock two;
  FileLock other;
  FileLock whole;
  EXPECT_EQ(one.take(file, Mode::kShared, "2 shards"), Outcome::kTaken);
  EXPECT_EQ(two.take(file, Mode::kShared, "2 shards"), Outcome::kTaken);
  EXPECT_EQ(other.take(file, Mode::kShared, "3 shards"), Outcome::kHeld);
  EXPECT_EQ(whole.take(file, Mode::kAlone, "process 1"), Outcome::kHeld);
  EXPECT_EQ(whole.holder(), "2 shards");
  one.release();
  EXPECT_EQ(whole.take(file, Mode::kAlone, "process 1"), Outcome::kHeld);
  two.release();
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(whole.take(file, Mode::kAlone, "process 1"), Outcome::kTaken);
  EXPECT_EQ(one.take(file, Mode::kShared, "2 shards"), Outcome::kHeld);
  EXPECT_EQ(one.holder(), "process 1");
}

TEST(FileLockTest, ManyShareAndLeaveAtOnce) {
  const TemporaryFolder folder;
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < 50; ++turn) {
        FileLock lock;
        if (lock.take(folder / "lock", Mode::kShared, "8 shards") == Outcome::kTaken) ++taken;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 8 * 50);
  EXPECT_FALSE(std::filesystem::exists(folder / "lock"));
}

TEST(FileLockTest, DiesWithItsProcess) {
  const TemporaryFolder folder;
  const auto file = folder / "lock";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    FileLock lock;
    const char taken = lock.take(file, Mode::kAlone, "child") == Outcome::kTaken ? 'y' : 'n';
    if (::write(ready[1], &taken, 1) == 1) ::pause();
    ::_exit(0);
  }
  char taken = 0;
  ASSERT_EQ(::read(ready[0], &taken, 1), 1);
  EXPECT_EQ(taken, 'y');
  FileLock lock;
  EXPECT_EQ(lock.take(file, Mode::kAlone, "parent"), Outcome::kHeld);
  EXPECT_EQ(lock.holder(), "child");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(lock.take(file, Mode::kAlone, "parent"), Outcome::kTaken);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(FileLockTest, RefusesSymbolicLinks) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "thesis", "mine");
  std::filesystem::create_symlink(folder / "thesis", folder / "lock");
  FileLock lock;
  EXPECT_THROW(lock.take(folder / "lock", Mode::kAlone, "process 1"), IoError);
  EXPECT_EQ(read_file(folder / "thesis"), "mine");
}

}  // namespace
}  // namespace olrank
