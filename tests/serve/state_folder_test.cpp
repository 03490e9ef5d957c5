#include "serve/state_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <optional>
#include <string>

#include "core/io/atomic_file.h"
#include "serve/file_log.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

ServiceIdentity small_identity() {
  ServiceIdentity identity;
  identity.features = 3;
  identity.normalisation = "{}";
  return identity;
}

unsigned mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777U;
}

std::ptrdiff_t entries(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), {});
}

TEST(StateFolder, LeavesNothingOfAStartThatIsNotAccepted) {
  const TemporaryFolder folder;
  { const StateFolder state(folder / "new" / "state"); }
  EXPECT_EQ(entries(folder.path()), 0);

  fs::create_directory(folder / "there");
  write_bytes(folder / "there" / "lock", "4711");
  {
    const StateFolder state(folder / "there");
    EXPECT_EQ(read_file(folder / "there" / "lock"), fmt::format("{}", ::getpid()));
  }
  EXPECT_EQ(read_file(folder / "there" / "lock"), "4711");
  EXPECT_EQ(entries(folder / "there"), 1);
}

TEST(StateFolder, IsForItsOwnerOnly) {
  const TemporaryFolder folder;
  {
    StateFolder state(folder / "parent" / "state");
    state.begin(small_identity(), "model");
    FileLog(state.log(), 0).begin_writing();
    state.accept();
  }
  EXPECT_EQ(mode_of(folder / "parent" / "state"), 0700U);
  for (const char* file : {"service.toml", "start.safetensors", "feedback.jsonl", "lock"})
    EXPECT_EQ(mode_of(folder / "parent" / "state" / file), 0600U) << file;
  EXPECT_NE(mode_of(folder / "parent"), 0700U);

  // An earlier version left these open to others.
  fs::permissions(folder / "parent" / "state", fs::perms(0755));
  fs::permissions(folder / "parent" / "state" / "feedback.jsonl", fs::perms(0644));
  write_bytes(folder / "parent" / "state" / ".checkpoint.tmp-12-0", "left by a killed process");
  {
    StateFolder state(folder / "parent" / "state");
    EXPECT_EQ(mode_of(folder / "parent" / "state"), 0755U);
    state.accept();
  }
  EXPECT_EQ(mode_of(folder / "parent" / "state"), 0700U);
  EXPECT_EQ(mode_of(folder / "parent" / "state" / "feedback.jsonl"), 0600U);
  EXPECT_FALSE(fs::exists(folder / "parent" / "state" / ".checkpoint.tmp-12-0"));
}

// A state may be put into a folder with other files: these, and the folder's mode, are somebody's own.
TEST(StateFolder, LeavesAFolderOfOthersOpen) {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms(0755));
  write_bytes(folder / "thesis.txt", "");
  fs::permissions(folder / "thesis.txt", fs::perms(0644));
  StateFolder state(folder.path());
  state.begin(small_identity(), "");
  state.accept();
  EXPECT_EQ(mode_of(folder.path()), 0755U);
  EXPECT_EQ(mode_of(folder / "thesis.txt"), 0644U);
  EXPECT_EQ(mode_of(folder / "service.toml"), 0600U);
}

TEST(StateFolder, RefusesAnythingButRegularFiles) {
  for (const char* name : {"lock", "service.toml", "start.safetensors", "feedback.jsonl", "checkpoint"}) {
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    fs::create_directory(folder / "state");
    const fs::path file = folder / "state" / name;
    write_bytes(folder / "theirs", "theirs");
    const auto refused = [&] { EXPECT_THROW(StateFolder(folder / "state"), IoError); };
    fs::create_symlink(folder / "theirs", file);
    EXPECT_TRUE(
        contains(message_of<IoError>([&] { StateFolder(folder / "state"); }), file.string() + ": "));
    fs::remove(file);
    fs::create_symlink(folder / "nowhere", file);
    refused();
    EXPECT_FALSE(fs::exists(folder / "nowhere"));
    fs::remove(file);
    fs::create_directory(file);
    refused();
    fs::remove(file);
    ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    refused();
    EXPECT_EQ(entries(folder / "state"), 1);
    EXPECT_EQ(read_file(folder / "theirs"), "theirs");
  }
}

TEST(StateFolder, NoticesThatItsLockIsGone) {
  const TemporaryFolder folder;
  StateFolder state(folder / "state");
  state.begin(small_identity(), "");
  state.accept();
  state.require_lock();
  fs::rename(folder / "state" / "lock", folder / "moved");
  EXPECT_THROW(state.require_lock(), StateLost);
  fs::copy_file(folder / "moved", folder / "state" / "lock");
  EXPECT_THROW(state.require_lock(), StateLost);
  fs::rename(folder / "moved", folder / "state" / "lock");
  state.require_lock();
}

TEST(StateFolder, IsForOneProcessAtATime) {
  const TemporaryFolder folder;
  const StateFolder state(folder / "state");
  EXPECT_TRUE(contains(message_of<IoError>([&] { StateFolder(folder / "state"); }),
                       fmt::format("in use by process {}.", ::getpid())));
  state.require_lock();
}

TEST(StateFolder, IsReadOnceItsServiceStopped) {
  const TemporaryFolder folder;
  const fs::path path = folder / "state";
  {
    StateFolder state(path);
    const std::string message = message_of<IoError>([&] { StateFolder(path, StateFolder::Use::kReading); });
    EXPECT_TRUE(contains(message, fmt::format("in use by process {}.", ::getpid())));
    EXPECT_TRUE(contains(message, "/v1/model"));
    state.accept();
  }
  const auto before = fs::last_write_time(path / "lock");
  {
    const StateFolder one(path, StateFolder::Use::kReading);
    const StateFolder two(path, StateFolder::Use::kReading);
    EXPECT_FALSE(one.identity());
    EXPECT_THROW(StateFolder{path}, IoError);
  }
  EXPECT_EQ(fs::last_write_time(path / "lock"), before);
  EXPECT_THROW(StateFolder(folder / "none", StateFolder::Use::kReading), IoError);
  EXPECT_FALSE(fs::exists(folder / "none"));
}

struct BackedUp {
  BackedUp() {
    StateFolder state(from);
    state.begin(small_identity(), "model");
    state.accept();
    log.emplace(state.log(), 0);
    log->begin_writing();
  }
  void append(int first, int last) {
    for (int number = first; number <= last; ++number) {
      FeedbackRecord record = liked_first_feature(number);
      log->append(record);
    }
  }

  TemporaryFolder folder;
  fs::path from = folder / "state";
  fs::path to = folder / "copies" / "copy";
  std::optional<FileLog> log;
};

TEST(StateBackup, CopiesWhatIsNewFromALogThatIsWritten) {
  BackedUp state;
  state.append(1, 3);
  write_bytes(state.from / "checkpoint", "three");
  write_bytes(state.from / "events-000001.jsonl", "one\ntwo\nthr");  // it is being written
  write_bytes(state.from / "late.jsonl", "late\n");
  write_bytes(state.from / "impressions-000001.bin", "lists");
  write_bytes(state.from / "feedback.jsonl.cut-at-7", "old");
  write_bytes(state.from / "notes.txt", "mine");
  const StateBackup first = back_up_state(state.from, state.to);
  EXPECT_EQ(first.records, 3U);
  EXPECT_EQ(first.new_records, 3U);
  for (const char* name : {"service.toml", "start.safetensors", "feedback.jsonl", "checkpoint",
                           "late.jsonl", "impressions-000001.bin"})
    EXPECT_EQ(read_file(state.to / name), read_file(state.from / name)) << name;
  EXPECT_EQ(read_file(state.to / "events-000001.jsonl"), "one\ntwo\n");
  EXPECT_EQ(entries(state.to), 8) << "these, and the lock";
  EXPECT_EQ(mode_of(state.to), 0700U);
  EXPECT_EQ(mode_of(state.to / "feedback.jsonl"), 0600U);

  const std::int64_t before = state.log->bytes();
  state.append(4, 5);
  fs::remove(state.from / "events-000001.jsonl");
  write_bytes(state.from / "events-000002.jsonl", "four\n");
  const StateBackup second = back_up_state(state.from, state.to);
  EXPECT_EQ(second.records, 5U);
  EXPECT_EQ(second.new_records, 2U);
  EXPECT_EQ(second.bytes, state.log->bytes() - before + 5);
  EXPECT_EQ(read_file(state.to / "feedback.jsonl"), read_file(state.from / "feedback.jsonl"));
  EXPECT_FALSE(fs::exists(state.to / "events-000001.jsonl"));
  EXPECT_EQ(back_up_state(state.from, state.to).bytes, 0);
}

TEST(StateBackup, CompletesOneThatWasInterrupted) {
  BackedUp state;
  state.append(1, 4);
  back_up_state(state.from, state.to);
  const std::string whole = read_file(state.to / "feedback.jsonl");
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{10}, whole.size() / 2, whole.size() - 1}) {
    fs::resize_file(state.to / "feedback.jsonl", bytes);
    EXPECT_EQ(back_up_state(state.from, state.to).records, 4U) << bytes;
    EXPECT_EQ(read_file(state.to / "feedback.jsonl"), whole) << bytes;
  }
}

TEST(StateBackup, ReadsSegmentsInEitherForm) {
  BackedUp state;
  const auto require_same = [&](std::uint64_t records, std::uint64_t fresh) {
    const StateBackup backup = back_up_state(state.from, state.to);
    EXPECT_EQ(backup.records, records);
    EXPECT_EQ(backup.new_records, fresh);
    const LogText copy(state.to / "feedback.jsonl");
    std::string text;
    const std::int64_t begin = std::max(copy.begin(), state.log->begin());
    for (std::int64_t position = begin; position < copy.end(); position = begin + std::ssize(text))
      text += copy.lines_at(position);
    std::string wanted;
    FileLog::Reader reader(*state.log, begin);
    for (std::string_view line; reader.next(line);) wanted += std::string(line) + "\n";
    EXPECT_EQ(text, wanted);
    EXPECT_EQ(FileLog(state.to / "feedback.jsonl", 1).rounds(), records);
  };
  state.append(1, 3);
  require_same(3, 3);
  state.log->compact({});
  require_same(3, 0);
  state.append(4, 5);
  require_same(5, 2);
  state.log->compact({});
  state.append(6, 6);
  require_same(6, 1);
  // A copy that has all goes on when rounds are dropped, and another one begins where the log does.
  state.log->allow_dropping(6);
  state.log->compact({1, LogKeep::parse("checkpoint")});
  ASSERT_EQ(state.log->dropped(), 5U);
  state.append(7, 7);
  require_same(7, 1);
  EXPECT_EQ(LogText(state.to / "feedback.jsonl").begin(), 0);
  const fs::path whole = std::exchange(state.to, state.folder / "copies" / "later");
  require_same(7, 2);
  require_same(7, 0);
  EXPECT_EQ(FileLog(state.to / "feedback.jsonl", 1).dropped(), 5U);
  fs::resize_file(whole / "feedback.jsonl", read_file(whole / "feedback.jsonl").find('\n') + 10);
  EXPECT_TRUE(contains(message_of<InvalidArgument>([&] { back_up_state(state.from, whole); }),
                       "has dropped rounds"));
}

TEST(StateBackup, RefusesWhatIsNoCopyOfThisLog) {
  BackedUp state;
  state.append(1, 3);
  const auto refusal = [&](const fs::path& from, const fs::path& to) {
    return message_of<InvalidArgument>([&] { back_up_state(from, to); });
  };
  EXPECT_TRUE(contains(refusal(state.folder / "nothing", state.to), "contains no service"));
  EXPECT_TRUE(contains(refusal(state.from, state.from), "is the state folder itself"));
  EXPECT_TRUE(contains(refusal(state.from, state.from / "copy"), "is in the state folder of a service"));
  BackedUp other;
  other.append(2, 4);
  back_up_state(other.from, state.to);
  const std::string copied = read_file(state.to / "feedback.jsonl");
  EXPECT_TRUE(
      contains(refusal(state.from, state.to), "it is of another log, or of one that was cut since"));
  EXPECT_EQ(read_file(state.to / "feedback.jsonl"), copied);
  const StateFolder used(state.to);
  EXPECT_TRUE(
      contains(message_of<IoError>([&] { back_up_state(other.from, state.to); }), "is in use by process"));
}

TEST(StateBackup, CopiesNoDamagedRecord) {
  BackedUp state;
  state.append(1, 3);
  std::string lines = read_file(state.from / "feedback.jsonl");
  const std::size_t second = lines.find('\n') + 1;
  lines.replace(lines.find("\"clicks\":[", second) + 10, 1, "7");
  state.log.reset();
  write_bytes(state.from / "feedback.jsonl", lines);
  EXPECT_TRUE(contains(message_of<DataError>([&] { back_up_state(state.from, state.to); }),
                       "feedback.jsonl:2:1: The record is damaged"));
}

}  // namespace
}  // namespace olrank
