#include <gtest/gtest.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/containers.h"
#include "core/io/fingerprint.h"
#include "core/io/folder.h"
#include "core/io/json.h"
#include "tests/core/metrics/small_data.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

std::size_t entries(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(ReadFileTest, ReadsNoMoreThanAllowed) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "ten", "0123456789");
  EXPECT_EQ(read_file(folder / "ten", 10), "0123456789");
  EXPECT_TRUE(contains(message_of<IoError>([&] { read_file(folder / "ten", 9); }), "larger than 9 bytes"));
  EXPECT_TRUE(contains(message_of<IoError>([] { read_file("/dev/zero", 1000); }), "from a pipe or device"));
  EXPECT_THROW(read_file(folder.path()), IoError);
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
  EXPECT_TRUE(contains(message_of<IoError>([&] { AtomicFile(nowhere).commit(); }), "leads to no file"));
  EXPECT_THROW(AtomicFile("/dev/full").write("x"), IoError);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(AtomicFileTest, AppearsOnlyOnCommitAndConcurrentWritersDoNotConflict) {
  const TemporaryFolder folder;
  const auto target = folder / "result.json";
  AtomicFile one(target);
  AtomicFile two(target);
  one.write("one");
  two.write("hello ");
  two.write(std::string(100'000, 'x'));
  EXPECT_FALSE(std::filesystem::exists(target));
  one.commit();
  EXPECT_EQ(read_file(target), "one");
  two.commit();
  EXPECT_EQ(read_file(target), "hello " + std::string(100'000, 'x'));
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(AtomicFileTest, ErrorNamesUnwritableFile) {
  const TemporaryFolder folder;
  EXPECT_TRUE(contains(
      message_of<IoError>([&] { write_file_atomically(folder / "missing" / "x", "text"); }), "missing/x"));
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
    EXPECT_TRUE(contains(message_of<IoError>([&] { file.write("second"); }),
                         "No space left on device. Free some space"));
  }
  EXPECT_EQ(read_file(target), "first");
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(CacheFolderTest, FollowsXdgBaseDirectorySpecification) {
  const auto folder_with = [](const char* home, const char* cache) {
    // The child process sets the variables, so that this one keeps its own.
    return [=] {
      for (const auto& [name, value] : {std::pair{"HOME", home}, std::pair{"XDG_CACHE_HOME", cache}})
        value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
      std::fputs(user_cache_folder().c_str(), stderr);
      std::exit(0);
    };
  };
  const auto none = static_cast<const char*>(nullptr);
  EXPECT_EXIT(folder_with("/home/u", "/c")(), testing::ExitedWithCode(0), "^/c/olrank$");
  for (const char* cache : {"relative", none})
    EXPECT_EXIT(folder_with("/home/u", cache)(), testing::ExitedWithCode(0), "^/home/u/.cache/olrank$");
  EXPECT_EXIT(folder_with(none, none)(), testing::ExitedWithCode(0), "^$");
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

using Mode = FileLock::Mode;
using Outcome = FileLock::Outcome;

TEST(FileLockTest, EqualNotesShareAndNoFileIsLeftAfterTheLast) {
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
  EXPECT_EQ(two.take(file, Mode::kAlone, "process 2"), Outcome::kHeld);
  EXPECT_EQ(two.holder(), "process 1");
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

std::string nested(int depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(JsonTest, RefusesValuesThatNestDeeply) {
  EXPECT_TRUE(try_parse_json(nested(64)).is_array());
  for (const int depth : {65, 1'000'000}) {
    EXPECT_TRUE(try_parse_json(nested(depth)).is_discarded());
    EXPECT_THROW(parse_json(nested(depth)), nlohmann::json::parse_error);
    EXPECT_THROW(parse_ordered_json(nested(depth)), nlohmann::json::parse_error);
  }
  // Brackets in strings do not nest, and neither do many values side by side.
  const std::string brackets =
      "[\"" + std::string(100, '[') + "\\\"" + std::string(100, '{') + "\\\\\", {}";
  std::string many = brackets;
  for (int value = 0; value < 100; ++value) many += ", [{}]";
  EXPECT_EQ(try_parse_json(many + "]").size(), 102U);
}

/// Compares each number as a float and as a double with the nearest double, which strtod() finds.
class RoundedNumbers final : public JsonHandler {
 public:
  bool null() override { return false; }
  bool boolean(bool) override { return false; }
  bool number_integer(std::int64_t) override { return false; }
  bool number_unsigned(std::uint64_t) override { return false; }
  bool number_float(const JsonNumber& number) override {
    const std::string digits(number.digits);
    const double nearest = std::strtod(digits.c_str(), nullptr);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(number.value()), std::bit_cast<std::uint64_t>(nearest))
        << digits;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(number.rounded()),
              std::bit_cast<std::uint32_t>(static_cast<float>(nearest)))
        << digits;
    return ++numbers > 0;
  }
  bool string(std::string&) override { return false; }
  bool start_object() override { return false; }
  bool key(std::string&) override { return false; }
  bool end_object() override { return false; }
  bool start_array() override { return true; }
  bool end_array() override { return true; }
  void invalid(std::size_t byte, Fault) override { ADD_FAILURE() << byte; }

  int numbers = 0;
};

TEST(JsonStreamTest, NumbersAreTheNearestDoublesAndThoseAsFloats) {
  constexpr int kTimes = 20'000;
  RoundedNumbers handler;
  for (std::uint32_t time = 0; time < kTimes; ++time) {
    RngStream coins = test_coins(time);
    const double any = std::ldexp(coins.uniform() + 0.5, static_cast<int>(coins.index(100)) - 50);
    const auto below = static_cast<float>(any);
    // Near the middle of two floats a second rounding would show.
    double middle = 0.5 * (static_cast<double>(below) + std::nextafter(below, 1e30F));
    if (coins.index(2) == 0) middle = std::nextafter(middle, coins.index(2) == 0 ? 0.0 : 1e30);
    const int digits = 14 + static_cast<int>(coins.index(8));
    const std::string text = fmt::format(
        "[{0:.4f},-{0:.9e},{0:.17e},-{1:.{2}e},{1:.{2}f},{1:.60f},0.0,-0.0]", any, middle, digits);
    ASSERT_TRUE(parse_json_events(text, handler)) << text;
  }
  EXPECT_EQ(handler.numbers, 8 * kTimes);
}

/// The examples of the format's own description, and varints of every length.
TEST(ProtobufMessage, WritesDocumentedExamples) {
  ProtobufMessage number;
  number.put_number(1, 150);
  EXPECT_EQ(number.bytes(), std::string("\x08\x96\x01"));
  ProtobufMessage text;
  text.put_text(2, "testing");
  EXPECT_EQ(text.bytes(), std::string("\x12\x07testing"));
  ProtobufMessage nested;
  nested.put_message(3, number);
  nested.put_number(1, 0);
  nested.put_number(16, 127);
  nested.put_number(1, -1);
  EXPECT_EQ(nested.bytes(), std::string("\x1a\x03\x08\x96\x01"
                                        "\x08\x00\x80\x01\x7F\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01",
                                        21));
}

std::string example_zip() {
  StoredZip zip;
  zip.add("a/first", std::string(1000, 'x'));
  zip.add("a/empty", "");
  zip.add("b", "123456789");
  return zip.finish();
}

TEST(StoredZip, EntriesAreAlignedAndUnchanged) {
  const std::string bytes = example_zip();
  EXPECT_EQ(bytes, example_zip());
  const std::size_t content = bytes.find("123456789");
  ASSERT_NE(content, std::string::npos);
  EXPECT_EQ(content % StoredZip::kAlignment, 0U);
  EXPECT_EQ(bytes.find(std::string(1000, 'x')) % StoredZip::kAlignment, 0U);
  // The check value of CRC-32, in front of both sizes, in the entry's header and in the directory.
  const std::string known("\x26\x39\xF4\xCB\x09\0\0\0\x09\0\0\0", 12);
  const std::size_t first = bytes.find(known);
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(bytes.find(known, first + 1), std::string::npos);
}

TEST(FingerprintTest, IsXxh128OfAnyPieces) {
  // The published value of XXH3-128 for empty input.
  EXPECT_EQ(fingerprint_of("").hex(), "99aa06d3014798d86001c324468d497f");
  const std::string text(10'000, 'q');
  Fingerprinter whole;
  whole.add(text);
  Fingerprinter pieces;
  for (std::size_t begin = 0; begin < text.size(); begin += 37) pieces.add(text.substr(begin, 37));
  EXPECT_EQ(whole.value(), pieces.value());
  EXPECT_EQ(whole.value(), fingerprint_of(text));
  EXPECT_NE(whole.value(), fingerprint_of(text + "q"));
}

}  // namespace
}  // namespace olrank
