#include "jobs/checkpoint_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kName = "state.safetensors";

std::vector<double> counted_values(std::int64_t count) {
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), 0.5);
  return values;
}

/// Brings one number per call, as a device would bring a piece; or, late, all that the values are by then.
class Arrival : public ByteArrival {
 public:
  Arrival(std::span<const std::byte> bytes, bool late)
      : late_(late), bytes_(bytes), kept_(bytes.begin(), bytes.end()) {}
  bool pass_on(const std::function<void(ArrivedBytes)>& sink, bool wait) override {
    if (late_) kept_.assign(bytes_.begin(), bytes_.end());
    while (at_ != std::ssize(kept_)) {
      const auto end = late_ ? kept_.end() : kept_.begin() + at_ + 8;
      const auto some = std::make_shared<std::vector<std::byte>>(kept_.begin() + at_, end);
      sink({*some, some});
      at_ = end - kept_.begin();
      if (!wait) break;
    }
    return at_ == std::ssize(kept_);
  }

 private:
  bool late_;
  std::span<const std::byte> bytes_;
  std::vector<std::byte> kept_;
  std::ptrdiff_t at_ = 0;
};

class ArrivingSource : public HostSource {
 public:
  explicit ArrivingSource(const std::vector<double>& values, bool late = false)
      : HostSource(std::as_bytes(std::span(values))), values_(values), late_(late) {}
  std::shared_ptr<ByteArrival> start(std::size_t first, std::size_t bytes) const override {
    return std::make_shared<Arrival>(std::as_bytes(std::span(values_)).subspan(first, bytes), late_);
  }

 private:
  const std::vector<double>& values_;
  bool late_;
};

/// A round, growing rows of which the last is open, and three zeros.
class CheckpointWriterTest : public testing::Test {
 protected:
  void put(StateWriter& state, std::int64_t round) const {
    const std::vector<double> rows = counted_values(10 * round);
    const std::vector<double> open{-1.0, static_cast<double>(round)};
    state.put("round", round);
    state.put_growing<double>("rows", lineage_, ArrivingSource(rows), std::ssize(rows), open, 3);
  }
  void begin(
      CheckpointWriter& writer, std::int64_t round, std::function<void()> before = [] {}) const {
    StateWriter state = writer.state();
    put(state, round);
    writer.begin(std::move(state), std::string(kName), std::move(before));
  }
  void write(CheckpointWriter& writer, std::int64_t round) const {
    begin(writer, round);
    writer.finish();
  }
  /// The round of the checkpoint there, whose rows have to be those of the round.
  static std::int64_t round_in(const fs::path& folder, std::string_view name = kName) {
    StateReader reader = read_state_file(folder / name, "start again");
    const auto round = reader.get_one<std::int64_t>("round");
    std::vector<double> expected = counted_values(10 * round);
    expected.insert(expected.end(), {-1.0, static_cast<double>(round), 0.0, 0.0, 0.0});
    EXPECT_EQ(reader.get<double>("rows"), expected);
    reader.require_end();
    return round;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  fs::path block(int number) const { return folder_.path() / block_file_names()[number]; }

  TemporaryFolder folder_;
  CheckpointWriter writer_{folder_.path()};
  Lineage lineage_;
};

TEST_F(CheckpointWriterTest, AppendsOnlyWhatIsNew) {
  for (const std::int64_t round : {1, 2, 50}) {
    const std::size_t before = fs::exists(block(0)) ? fs::file_size(block(0)) : 0;
    write(writer_, round);
    EXPECT_EQ(round_in(folder_.path()), round);
    EXPECT_EQ(fs::file_size(block(0)), static_cast<std::size_t>(round) * 80);
    EXPECT_LT(before, fs::file_size(block(0)));
    EXPECT_LT(fs::file_size(folder_.path() / kName), 1000U) << "the rows are not in it";
  }
  EXPECT_EQ(names(), (std::vector<std::string>{"blocks-00.bin", std::string(kName)}));
}

TEST_F(CheckpointWriterTest, AStateWithBlocksHasTheFingerprintOfAWholeOne) {
  StateWriter grown;
  put(grown, 3);
  StateWriter whole;
  std::vector<double> rows = counted_values(30);
  rows.insert(rows.end(), {-1.0, 3.0, 0.0, 0.0, 0.0});
  whole.put("round", std::int64_t{3});
  whole.put("rows", rows);
  EXPECT_EQ(grown.fingerprint(), whole.fingerprint());
  EXPECT_EQ(grown.bytes(), whole.bytes());
  StateWriter digest = StateWriter::digester();
  put(digest, 3);
  EXPECT_EQ(digest.fingerprint(), whole.fingerprint());
  EXPECT_EQ(digest.value_bytes(), whole.value_bytes());
}

// Values that the next round changes leave before it, whatever else is still on its way.
TEST_F(CheckpointWriterTest, NoLineageWaitsForAnother) {
  std::vector<double> changing = counted_values(4);
  const Lineage of_changing;
  StateWriter state = writer_.state();
  put(state, 5);
  state.put_growing<double>("changing", of_changing, ArrivingSource(changing, true), std::ssize(changing));
  writer_.begin(std::move(state), std::string(kName), [] {});
  EXPECT_FALSE(fs::exists(folder_.path() / kName)) << "rows are still on their way";
  std::fill(changing.begin(), changing.end(), -1.0);
  writer_.finish();
  StateReader reader = read_state_file(folder_.path() / kName, "start again");
  reader.skip_to("changing");
  EXPECT_EQ(reader.get<double>("changing"), counted_values(4));
}

// Rounds go on while values arrive. Whatever a crash leaves then, the checkpoint before is valid.
TEST_F(CheckpointWriterTest, ACrashLeavesTheEarlierCheckpoint) {
  write(writer_, 2);
  bool before_called = false;
  begin(writer_, 5, [&] { before_called = true; });
  for (int round = 0; round < 20; ++round) {
    writer_.advance();
    const TemporaryFolder crashed;
    fs::copy(folder_.path(), crashed.path(), fs::copy_options::recursive);
    EXPECT_EQ(round_in(crashed.path()), 2);
  }
  EXPECT_FALSE(before_called);
  writer_.finish();
  EXPECT_TRUE(before_called);
  EXPECT_EQ(round_in(folder_.path()), 5);
}

TEST_F(CheckpointWriterTest, TheEndFinishesWhatWasBegun) {
  {
    CheckpointWriter writer(folder_.path());
    begin(writer, 4);
  }
  EXPECT_EQ(round_in(folder_.path()), 4);
}

TEST_F(CheckpointWriterTest, ChangedValuesGoIntoANewFile) {
  write(writer_, 3);
  fs::copy_file(folder_.path() / kName, folder_.path() / "state-1.safetensors");
  lineage_.renew();
  write(writer_, 4);
  EXPECT_EQ(round_in(folder_.path()), 4);
  EXPECT_EQ(round_in(folder_.path(), "state-1.safetensors"), 3) << "it needs the old file";
  fs::remove(folder_.path() / "state-1.safetensors");
  write(writer_, 5);
  EXPECT_EQ(names(), (std::vector<std::string>{"blocks-01.bin", std::string(kName)}));
}

TEST_F(CheckpointWriterTest, ACheckpointThatCannotBeReadKeepsAllBlocks) {
  write(writer_, 3);
  const fs::path unreadable = folder_.path() / "state-1.safetensors";
  std::ofstream(unreadable) << "torn";
  lineage_.renew();
  write(writer_, 4);
  EXPECT_TRUE(fs::exists(block(0)));
  fs::remove(unreadable);
  write(writer_, 5);
  EXPECT_FALSE(fs::exists(block(0)));
  EXPECT_EQ(round_in(folder_.path()), 5);
}

TEST_F(CheckpointWriterTest, ARestartLeavesTheFilesOfEarlierCheckpointsAlone) {
  {
    CheckpointWriter writer(folder_.path());
    write(writer, 3);
  }
  std::ofstream(block(1)) << "what a crash left";
  CheckpointWriter writer(folder_.path());
  begin(writer, 4);
  EXPECT_EQ(round_in(folder_.path()), 3);
  writer.finish();
  EXPECT_EQ(round_in(folder_.path()), 4);
  EXPECT_EQ(names(), (std::vector<std::string>{"blocks-02.bin", std::string(kName)}));
}

TEST_F(CheckpointWriterTest, RefusesDamagedBlocks) {
  write(writer_, 3);
  const auto refusal = [&] { return message_of<IoError>([&] { round_in(folder_.path()); }); };
  const std::string whole = read_file(block(0));
  const std::string damaged = block(0).string() + ": This part of the checkpoint " +
                              (folder_.path() / kName).string() +
                              " is damaged: its checksum does not match. To continue, start again.";
  std::string turned = whole;
  turned[17] ^= 1;
  write_file_atomically(block(0), turned);
  EXPECT_EQ(refusal(), damaged);
  write_file_atomically(block(0), std::string_view(whole).substr(0, whole.size() - 1));
  EXPECT_EQ(refusal(), damaged);
  fs::remove(block(0));
  EXPECT_TRUE(contains(refusal(), "blocks-00.bin"));
  write_file_atomically(block(0), whole + "of a later checkpoint");
  EXPECT_EQ(round_in(folder_.path()), 3);
}

TEST_F(CheckpointWriterTest, FailuresReachTheCaller) {
  CheckpointWriter writer(folder_.path() / "missing");
  EXPECT_THROW(write(writer, 2), IoError);
  EXPECT_THROW(write(writer, 3), IoError);
  EXPECT_THROW(writer.advance(), IoError);
}

// Blocks of a checkpoint that fails cost no earlier one.
TEST_F(CheckpointWriterTest, MakesRoomWhenTheBlocksAreThere) {
  std::uintmax_t bytes = 0;
  begin(writer_, 2, [&] {
    bytes = fs::file_size(block(0));
    EXPECT_FALSE(fs::exists(folder_.path() / kName));
  });
  writer_.finish();
  EXPECT_EQ(bytes, fs::file_size(block(0)));
}

/// A state whose metadata says where its values are.
std::string state_with_blocks(const std::string& json) {
  return safetensors_bytes({}, {{"olrank_state", "3"},
                                {"checksum", fingerprint_of("").hex()},
                                {"blocks", json},
                                {"blocks_checksum", fingerprint_of(json).hex()}});
}

TEST(StateBlocksTest, RefusesPlacesThatNoWriterNames) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "blocks-00.bin", "12345678");
  write_file_atomically(folder.path() / "other", "12345678");
  const std::string sum = fingerprint_of("12345678").hex();
  const auto file = [&](const std::string& name) {
    return R"({"files":[{"name":")" + name + R"(","bytes":8,"checksum":")" + sum + R"("}],"entries":[)";
  };
  for (const std::string& json :
       {std::string(), std::string("[]"), std::string("{}"), file("other") + "]}",
        file("../blocks-00.bin") + "]}",
        file("blocks-00.bin") + R"({"place":0,"file":0,"first":0,"bytes":8,"zeros":0}]})"}) {
    const std::string message = message_of<IoError>(
        [&] { StateReader(state_with_blocks(json), "there", "start again", folder.path()); });
    EXPECT_EQ(message,
              "there: This checkpoint does not say where its values are. To continue, start again.")
        << json;
  }
  EXPECT_NO_THROW(
      StateReader(state_with_blocks(file("blocks-00.bin") + "]}"), "there", "start again", folder.path()));
}

}  // namespace
}  // namespace olrank
