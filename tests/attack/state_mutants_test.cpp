// Damaged logs and checkpoints: each start refuses, in one sentence and without changing a byte, or serves
// a valid beginning of the log. It never crashes and never takes much memory. A child process plays each
// start.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "core/io/atomic_file.h"
#include "core/runtime/log.h"
#include "serve/service_setup.h"
#include "serve/state_folder.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/memory_limit.h"
#include "tests/support/message_of.h"
#include "tests/support/mutated.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using std::literals::operator""sv;

constexpr std::uint32_t kMutants = 500;
constexpr int kRounds = 7;
constexpr int kCheckpointRound = 4;
constexpr std::string_view kTelling = "0123456789{}[]\":,.-eE#\n\r\t \0\xFF"sv;
constexpr rlim_t kMoreMemory = 256'000'000;

LearnerSettings settings_in(const fs::path& folder) {
  return {folder / "checkpoint", "identity", 1000, kServedFeatures};
}

/// Does what the start of a service does with its log and checkpoint.
Learner::State start(const fs::path& folder) {
  FileLog log(folder / "log", 100);
  Learner learner(make_served(), log, settings_in(folder));
  learner.learn_all();
  return learner.state();
}

/// Ends the child: what it has to say, and the exit code that main() would give.
[[noreturn]] void play_start(const fs::path& folder, int pipe) {
  set_log_sink([](LogLevel, std::string_view) {});
  const MemoryLimit limit(kMoreMemory);
  std::string said;
  int code = 0;
  try {
    said = start(folder).fingerprint.hex();
  } catch (const std::exception& error) {
    said = error.what();
    code = static_cast<int>(exit_code_of(error));
  }
  if (::write(pipe, said.data(), said.size()) < 0) code = 99;
  ::_exit(code);
}

struct Start {
  int status = 0;  // of waitpid()
  std::string said;

  bool refused() const {
    return WIFEXITED(status) && (WEXITSTATUS(status) == 1 || WEXITSTATUS(status) == 2);
  }
  bool served() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

Start start_in_child(const fs::path& folder) {
  int ends[2];
  if (::pipe(ends) != 0) throw IoError("open", "a pipe", errno);
  const pid_t child = ::fork();
  if (child == 0) play_start(folder, ends[1]);
  ::close(ends[1]);
  Start start;
  char chunk[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], chunk, sizeof chunk)) > 0;) start.said.append(chunk, got);
  ::close(ends[0]);
  ::waitpid(child, &start.status, 0);
  return start;
}

/// A state of kRounds rounds with a checkpoint, and the learner's state after each of them.
class Original {
 public:
  Original() {
    {
      FileLog log(folder_ / "log", 1);
      for (int round = 1; round <= kRounds; ++round) log.append(liked_first_feature(round));
    }
    const std::string log = read_file(folder_ / "log");
    for (std::size_t end = 0; end < log.size(); end = log.find('\n', end) + 1) ends_.push_back(end);
    ends_.push_back(log.size());
    fs::create_directory(folder_ / "part");
    for (const std::size_t end : ends_) {
      write_bytes(folder_ / "part" / "log", log.substr(0, end));
      fingerprints_.push_back(start(folder_ / "part").fingerprint.hex());
    }
    {
      write_bytes(folder_ / "part" / "log", log.substr(0, ends_[kCheckpointRound]));
      FileLog part(folder_ / "part" / "log", 1);
      Learner learner(make_served(), part, settings_in(folder_ / "part"));
      learner.learn_all();
      learner.write_checkpoint();
    }
    log_ = log;
    checkpoint_ = read_file(folder_ / "part" / "checkpoint");
  }

  const std::string& log() const { return log_; }
  const std::string& checkpoint() const { return checkpoint_; }
  std::string first(std::size_t rounds) const { return log_.substr(0, ends_[rounds]); }
  std::string line(std::size_t round) const { return first(round).substr(ends_[round - 1]); }
  const std::string& fingerprint(std::size_t rounds) const { return fingerprints_[rounds]; }

 private:
  TemporaryFolder folder_;
  std::vector<std::size_t> ends_;  // after no round, after the first, …
  std::vector<std::string> fingerprints_;
  std::string log_;
  std::string checkpoint_;
};

const Original& original() {
  static const Original original;
  return original;
}

RngStream stream_of(std::uint32_t mutant) {
  return RngStream(make_key({.seed = 24, .purpose = Purpose::kProbe}), mutant);
}

void replace(std::string& bytes, std::string_view from, const std::string& to) {
  if (const std::size_t at = bytes.find(from); at != std::string::npos) bytes.replace(at, from.size(), to);
}

std::string mutant_log(RngStream& rng) {
  const Original& whole = original();
  std::string log = whole.log();
  const auto round = [&] { return std::size_t{1} + rng.index(kRounds); };
  switch (rng.index(9)) {
    case 0:
      return log.substr(0, rng.index(static_cast<std::uint32_t>(log.size()) + 1));
    case 1:
      return log.substr(0, rng.index(static_cast<std::uint32_t>(log.size()) + 1)) +
             std::string(rng.index(100'000), '\0');
    case 2: {  // lines in another order, repeated or missing
      std::string lines;
      for (std::uint32_t left = rng.index(2 * kRounds); left > 0; --left) lines += whole.line(round());
      return lines;
    }
    case 3:
      replace(log, "\n", "\r\n");
      return log;
    case 4:
      replace(log, fmt::format("\"round\":{}", round()),
              fmt::format("\"round\":{}", std::string(300, '9')));
      return log;
    case 5:
      replace(log, "\"inputs\":[", "\"inputs\":" + std::string(100'000, '['));
      return log;
    case 6:
      log.insert(whole.first(round()).size(), std::string(1 + rng.index(3'000'000), 'x'));
      return log;
    default:
      return mutated(log, {whole.log(), whole.checkpoint()}, kTelling, rng);
  }
}

void expect_refusal(const Start& start, const std::map<std::string, std::string>& before,
                    const fs::path& folder) {
  EXPECT_FALSE(start.said.empty());
  EXPECT_FALSE(contains(start.said, "\n"));
  EXPECT_LT(start.said.size(), 1500U) << start.said;
  EXPECT_FALSE(contains(start.said, "bad_alloc"));
  EXPECT_TRUE(files_in(folder) == before) << "a refused start changed the folder: " << start.said;
}

TEST(LogMutants, AreRefusedOrServeAValidBeginning) {
  int refused = 0;
  int served = 0;
  for (std::uint32_t mutant = 0; mutant < kMutants; ++mutant) {
    SCOPED_TRACE(mutant);
    RngStream rng = stream_of(mutant);
    const TemporaryFolder folder;
    const std::string log = mutant_log(rng);
    const bool with_checkpoint = rng.index(2) == 0;
    write_bytes(folder / "log", log);
    if (with_checkpoint) write_bytes(folder / "checkpoint", original().checkpoint());
    const auto before = files_in(folder.path());
    const Start start = start_in_child(folder.path());
    ASSERT_TRUE(start.refused() || start.served()) << "status " << start.status << ": " << start.said;
    if (start.refused()) {
      ++refused;
      expect_refusal(start, before, folder.path());
      continue;
    }
    ++served;
    // Exactly the records that the mutation left whole at the beginning of the log, and nothing behind
    // them.
    const std::string kept = read_file(folder / "log");
    std::size_t rounds = 0;
    while (rounds < kRounds && kept.size() > original().first(rounds).size()) ++rounds;
    ASSERT_EQ(kept, original().first(rounds));
    EXPECT_EQ(start.said, original().fingerprint(rounds));
    EXPECT_TRUE(log.starts_with(kept) || log + "\n" == kept);
    EXPECT_EQ(log.find('\n', std::min(log.size(), kept.size())), std::string::npos)
        << "cut more than a torn line";
    // A checkpoint that knows more than the log is kept aside.
    const bool is_newer = with_checkpoint && rounds < kCheckpointRound;
    EXPECT_EQ(is_newer, fs::exists(folder / "checkpoint.set-aside"));
    EXPECT_TRUE(!is_newer || rounds > 0);
  }
  fmt::print("{} refused, {} served\n", refused, served);
  EXPECT_GT(refused, 200);
  EXPECT_GT(served, 50);
}

// A log that another service imports.
TEST(LogMutants, FlippedBitsAreNotImportedOrChangeNothing) {
  const TemporaryFolder folder;
  FittedNormaliser normaliser;
  normaliser.features = kServedFeatures;
  const auto imported = [&](const std::string& log) {
    fs::remove_all(folder / "state");
    fs::create_directory(folder / "state");
    write_bytes(folder / "log", log);
    const StateFolder state(folder / "state");
    ImportedLog(state, {folder / "log", "", 1}, normaliser, false, false).commit();
    return read_file(state.log());
  };
  const std::string expected = imported(original().log());
  int refused = 0;
  constexpr int kFlips = 300;
  for (std::uint32_t flip = 0; flip < kFlips; ++flip) {
    RngStream rng = stream_of(30'000 + flip);
    try {
      ASSERT_EQ(imported(with_flipped_bit(original().log(), rng)), expected) << flip;
    } catch (const DataError& error) {
      ++refused;
      EXPECT_TRUE(std::string(error.what()).starts_with((folder / "log").string() + ":")) << error.what();
    }
  }
  EXPECT_GT(refused, kFlips * 9 / 10);
}

std::string mutant_checkpoint(RngStream& rng) {
  std::string bytes = original().checkpoint();
  const auto below = [&](std::size_t bound) { return rng.index(static_cast<std::uint32_t>(bound)); };
  switch (rng.index(8)) {
    case 0:
      return bytes.substr(0, below(bytes.size()));
    case 1:  // the header's length
      bytes[below(8)] = static_cast<char>(rng.next_bits());
      return bytes;
    case 2:
      for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(rng.next_bits());
      return bytes;
    case 3: {  // a number of the header
      const std::size_t header = bytes.find("{", 8);
      const std::size_t at = bytes.find_first_of("0123456789", header + below(bytes.find("}}") - header));
      const std::size_t end = bytes.find_first_not_of("0123456789", at);
      static constexpr const char* kNumbers[] = {
          "18446744073709551615", "9223372036854775807", "4294967296", "-1", "0", "1e30", "0.5"};
      const std::string number = kNumbers[below(std::size(kNumbers))];
      return bytes.replace(at, end - at, number);
    }
    case 4:
      return bytes + std::string(1 + below(1'000'000), static_cast<char>(rng.next_bits()));
    default:
      return mutated(bytes, {original().log(), original().checkpoint()}, kTelling, rng);
  }
}

TEST(CheckpointMutants, AreRefusedOrLearnOnToTheSameBits) {
  int refused = 0;
  for (std::uint32_t mutant = 0; mutant < kMutants; ++mutant) {
    SCOPED_TRACE(mutant);
    RngStream rng = stream_of(10'000 + mutant);
    const TemporaryFolder folder;
    write_bytes(folder / "log", original().log());
    write_bytes(folder / "checkpoint", mutant_checkpoint(rng));
    const auto before = files_in(folder.path());
    const Start start = start_in_child(folder.path());
    ASSERT_TRUE(start.refused() || start.served()) << "status " << start.status << ": " << start.said;
    if (start.refused()) {
      ++refused;
      expect_refusal(start, before, folder.path());
    } else {
      EXPECT_EQ(start.said, original().fingerprint(kRounds));
    }
  }
  fmt::print("{} refused, {} harmless\n", refused, kMutants - refused);
  EXPECT_GT(refused, 400);
}

// A file that claims to be larger than the memory.
TEST(CheckpointMutants, AreRefusedAtAnySize) {
  for (const char* name : {"log", "checkpoint"}) {
    const TemporaryFolder folder;
    write_bytes(folder / "log", original().log());
    write_bytes(folder / "checkpoint", original().checkpoint());
    fs::resize_file(folder / name, std::uintmax_t{1} << 40);
    const Start start = start_in_child(folder.path());
    EXPECT_TRUE(start.refused()) << name << ": status " << start.status << ": " << start.said;
    EXPECT_TRUE(contains(start.said, name));
    EXPECT_EQ(fs::file_size(folder / name), std::uintmax_t{1} << 40);
  }
}

// Records with valid checksums, but a content that no service writes: learning may stop with a sentence, no
// more.
TEST(LogMutants, WithValidChecksumsCannotCrash) {
  for (std::uint32_t mutant = 0; mutant < kMutants; ++mutant) {
    SCOPED_TRACE(mutant);
    RngStream rng = stream_of(20'000 + mutant);
    const std::string line = original().line(1);
    std::string body = line.substr(0, line.find(",\"check\""));
    body = mutated(body, {body}, "0123456789{}[]\":,.-eE", rng);
    const std::size_t round = body.find(',');
    if (round == std::string::npos || body.find('\n') != std::string::npos) continue;
    const TemporaryFolder folder;
    write_bytes(folder / "log", record_line(1, body.substr(round)));
    const Start start = start_in_child(folder.path());
    EXPECT_TRUE(start.refused() || start.served()) << "status " << start.status << ": " << body;
  }
}

}  // namespace
}  // namespace olrank
