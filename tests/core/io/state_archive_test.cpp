#include "core/io/state_archive.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <cmath>
#include <functional>
#include <map>

#include "core/error.h"
#include "core/feedback/examination.h"
#include "core/feedback/preference_pairs.h"
#include "core/io/atomic_file.h"
#include "core/io/safetensors.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

StateWriter example_state() {
  StateWriter state;
  state.put("round", std::int64_t{-7});
  state.put("theta", std::vector<double>{0.1, -0.0, 1e-310});
  state.put("weights", std::vector<float>{1.5F, -2.5F});
  state.put("bytes", std::vector<std::uint8_t>{0, 255});
  state.put("nothing", std::vector<double>{});
  state.put_text("recipe", "α = 0.1\n");
  state.put("count", std::uint64_t{1} << 63);
  return state;
}

/// An entry of example_state(): what a file says of it, and how it is read under a name.
struct Entry {
  const char* name;
  const char* dtype;
  std::int64_t count;
  std::size_t item_size;
  std::function<void(StateReader&, const std::string&)> get;
};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> entries = {
      {"round", "I64", 1, 8,
       [](StateReader& r, const std::string& name) { EXPECT_EQ(r.get_one<std::int64_t>(name), -7); }},
      {"theta", "F64", 3, 8,
       [](StateReader& r, const std::string& name) {
         const auto theta = r.get<double>(name);
         EXPECT_EQ(theta, (std::vector<double>{0.1, 0.0, 1e-310}));
         EXPECT_TRUE(std::signbit(theta.at(1)));
       }},
      {"weights", "F32", 2, 4,
       [](StateReader& r, const std::string& name) {
         EXPECT_EQ(r.get<float>(name), (std::vector<float>{1.5F, -2.5F}));
       }},
      {"bytes", "U8", 2, 1,
       [](StateReader& r, const std::string& name) {
         std::vector<std::uint8_t> bytes(2);
         r.get_into(name, std::span(bytes));
         EXPECT_EQ(bytes, (std::vector<std::uint8_t>{0, 255}));
       }},
      {"nothing", "F64", 0, 8,
       [](StateReader& r, const std::string& name) { EXPECT_TRUE(r.get<double>(name).empty()); }},
      {"recipe", "I8", 9, 1,
       [](StateReader& r, const std::string& name) { EXPECT_EQ(r.get_text(name), "α = 0.1\n"); }},
      {"count", "U64", 1, 8, [](StateReader& r, const std::string& name) {
         EXPECT_EQ(r.get_one<std::uint64_t>(name), std::uint64_t{1} << 63);
       }}};
  return entries;
}

/// Reads the first `count` of what example_state() holds.
void read_example(StateReader& reader, std::size_t count = 7) {
  for (std::size_t entry = 0; entry < count; ++entry) entries()[entry].get(reader, entries()[entry].name);
}

constexpr std::string_view kRestart = "start over";

StateReader reader_of(const StateWriter& state) {
  return StateReader(state.bytes(), "there");
}

TEST(StateArchiveTest, RoundTripsEntries) {
  StateReader reader = reader_of(example_state());
  read_example(reader);
  reader.require_end();
  EXPECT_EQ(example_state().bytes(), example_state().bytes());
  EXPECT_EQ(example_state().value_bytes(), 8 + 24 + 8 + 2 + 0 + 9 + 8);
}

// Results are compared across versions by fingerprints of states, so that these bits must stay.
TEST(StateArchiveTest, FingerprintsKeepTheirBits) {
  EXPECT_EQ(example_state().fingerprint().hex(), "08cca6b281391631ce26ac0d79f54e77");
  EXPECT_EQ(StateWriter().fingerprint(), fingerprint_of(""));
}

TEST(StateArchiveTest, IsASafetensorsFile) {
  const std::string bytes = example_state().bytes();
  const SafetensorsView view = view_safetensors(bytes, "there");
  ASSERT_EQ(view.tensors.size(), entries().size());
  for (std::size_t i = 0; i < entries().size(); ++i) {
    EXPECT_EQ(view.tensors[i].name, entries()[i].name);
    EXPECT_EQ(view.tensors[i].dtype, entries()[i].dtype);
    EXPECT_EQ(view.tensors[i].shape, std::vector<std::int64_t>{entries()[i].count});
    // Libraries that map the file need aligned values.
    EXPECT_EQ(
        static_cast<std::size_t>(view.tensors[i].bytes.data() - bytes.data()) % entries()[i].item_size, 0U);
  }
  EXPECT_EQ(view.tensors[5].bytes, "α = 0.1\n");
  EXPECT_EQ(view.metadata,
            (ModelMetadata{{"olrank_state", "2"}, {"checksum", example_state().fingerprint().hex()}}));
}

TEST(StateArchiveTest, NumbersRepeatedNames) {
  StateWriter state;
  for (const float value : {1.0F, 2.0F, 3.0F}) {
    state.put("theta", value);
    state.put_text("form", value > 2.0F ? "primal" : "dual");
  }
  const std::string bytes = state.bytes();
  std::vector<std::string> names;
  for (const TensorView& tensor : view_safetensors(bytes, "there").tensors) names.push_back(tensor.name);
  EXPECT_EQ(names, (std::vector<std::string>{"theta", "form", "theta#2", "form#2", "theta#3", "form#3"}));
  StateReader reader(bytes, "there");
  for (const float value : {1.0F, 2.0F, 3.0F}) {
    EXPECT_EQ(reader.get_one<float>("theta"), value);
    EXPECT_EQ(reader.get_text("form"), value > 2.0F ? "primal" : "dual");
  }
  reader.require_end();
}

TEST(StateArchiveTest, SkipsToAName) {
  StateReader reader = reader_of(example_state());
  reader.skip_to("round");
  reader.skip_to("nothing");
  EXPECT_TRUE(reader.get<double>("nothing").empty());
  reader.skip_to("count");
  EXPECT_EQ(reader.get_one<std::uint64_t>("count"), std::uint64_t{1} << 63);
  reader.require_end();
  EXPECT_EQ(message_of<IoError>([&] { read_example(reader); }),
            "there: The state ends where 'round' is expected: it belongs to another ranker or version.");
  StateReader again = reader_of(example_state());
  EXPECT_EQ(message_of<IoError>([&] { again.skip_to("counts"); }),
            "there: The state ends where 'counts' is expected: it belongs to another ranker or version.");
}

TEST(StateArchiveTest, RefusesEveryFieldUnderAnotherNameAndWhatIsLeft) {
  for (std::size_t entry = 0; entry < entries().size(); ++entry) {
    const auto& [name, dtype, count, item_size, get] = entries()[entry];
    for (const std::string& wrong : {std::string("other"), name + std::string("s"), std::string()}) {
      StateReader reader = reader_of(example_state());
      read_example(reader, entry);
      EXPECT_EQ(message_of<IoError>([&, &get = get] { get(reader, wrong); }),
                fmt::format("there: The state has '{}' ({}) where '{}' ({}) is expected: it belongs to "
                            "another ranker or version.",
                            name, dtype, wrong, dtype));
    }
    StateReader reader = reader_of(example_state());
    read_example(reader, entry);
    EXPECT_EQ(message_of<IoError>([&] { reader.require_end(); }),
              fmt::format("there: The state has '{}', which this ranker does not know: it belongs to "
                          "another ranker or version.",
                          name));
  }
}

/// An entry read as so many values of another type, or as another number of its own.
template <class T>
void expect_refused(std::size_t entry, const std::string& type, std::size_t asked) {
  const Entry& read = entries()[entry];
  StateReader reader = reader_of(example_state());
  read_example(reader, entry);
  std::vector<T> values(asked);
  const std::string message = message_of<IoError>([&] { reader.get_into(read.name, std::span(values)); });
  EXPECT_EQ(message, type != read.dtype
                         ? fmt::format("there: The state has '{0}' ({1}) where '{0}' ({2}) is expected: it "
                                       "belongs to another ranker or version.",
                                       read.name, read.dtype, type)
                         : fmt::format("there: The state has {} values of '{}' instead of {}: it belongs "
                                       "to another shape.",
                                       read.count, read.name, asked));
}

TEST(StateArchiveTest, RefusesEveryFieldAsAnotherTypeOrCount) {
  expect_refused<std::uint64_t>(0, "U64", 1);
  expect_refused<double>(0, "F64", 1);
  expect_refused<std::int32_t>(0, "I32", 1);
  expect_refused<float>(1, "F32", 3);
  expect_refused<std::int64_t>(1, "I64", 3);
  expect_refused<double>(2, "F64", 2);
  expect_refused<std::int8_t>(3, "I8", 2);
  expect_refused<std::uint16_t>(3, "U16", 2);
  expect_refused<float>(4, "F32", 0);
  expect_refused<std::int32_t>(5, "I32", 9);
  expect_refused<std::int64_t>(6, "I64", 1);
  expect_refused<std::int64_t>(0, "I64", 2);
  expect_refused<std::int64_t>(0, "I64", 0);
  expect_refused<double>(1, "F64", 2);
  expect_refused<double>(1, "F64", 1);
  expect_refused<float>(2, "F32", 3);
  expect_refused<std::uint8_t>(3, "U8", 0);
  expect_refused<double>(4, "F64", 1);
  expect_refused<std::uint64_t>(6, "U64", 3);
}

TEST(StateArchiveTest, RoundTripsFile) {
  const TemporaryFolder folder;
  example_state().write(folder / "state");
  EXPECT_EQ(read_file(folder / "state"), example_state().bytes());
  StateReader reader = read_state_file(folder / "state", kRestart);
  read_example(reader);
  reader.require_end();
  StateWriter().write(folder / "empty");
  read_state_file(folder / "empty", kRestart).require_end();
  EXPECT_NE(message_of<IoError>([&] { read_state_file(folder / "missing", kRestart); }), kNoError);
}

std::string refusal(const std::string& bytes) {
  return message_of<IoError>([&] { StateReader(bytes, "there", kRestart); });
}

TEST(StateArchiveTest, RefusesFileTruncatedAtAnyByte) {
  const std::string whole = example_state().bytes();
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const std::string message = refusal(size < whole.size() ? whole.substr(0, size) : whole + '\0');
    ASSERT_EQ(message.find("there: This is not a valid safetensors file. "), 0U) << size << message;
    ASSERT_TRUE(message.ends_with(" To continue, start over.")) << size << message;
  }
}

TEST(StateArchiveTest, RefusesAnyFlippedBit) {
  const std::string whole = example_state().bytes();
  std::map<std::string, int> messages;
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(static_cast<unsigned char>(changed[bit / 8]) ^ (1U << (bit % 8)));
    const std::string message = refusal(changed);
    ASSERT_NE(message, kNoError) << bit;
    ++messages[message];
  }
  // All values, names and digits of the checksum.
  EXPECT_GE(
      messages["there: This checkpoint is damaged: its checksum does not match. To continue, start over."],
      8 * (59 + 32));
}

TEST(StateArchiveTest, RefusesOtherFilesAndVersionsWithAWayOut) {
  EXPECT_EQ(refusal(safetensors_bytes({}, {{"format", "pt"}})),
            "there: This is not a checkpoint of olrank. To continue, start over.");
  std::string newer = StateWriter().bytes();
  const std::string version = R"("olrank_state":"2")";
  newer.replace(newer.find(version), version.size(), R"("olrank_state":"9")");
  EXPECT_EQ(refusal(newer),
            "there: This checkpoint has format version 9, but this olrank reads versions 2 and 3. To "
            "continue, use "
            "the olrank that wrote it, or start over.");
  EXPECT_EQ(refusal(std::string("olrankst\1\0\0\0\0\0\0\0", 16)),
            "there: This checkpoint has format version 1, but this olrank reads versions 2 and 3. To "
            "continue, use "
            "the olrank that wrote it, or start over.");
}

// A history, an alarm and habits of reading as versions wrote them whose classes still saved and loaded in
// two functions.
TEST(StateFieldsTest, ReadsAndWritesTheBytesOfEarlierVersions) {
  StateWriter written;
  written.put("history.features", std::int64_t{2});
  written.put("history.observed", std::int64_t{3});
  written.put("history.docs", std::vector<std::int64_t>{7, 8});
  written.put("history.count", std::vector{3.0});
  written.put("history.first_wins", std::vector{1.0});
  written.put("history.rows", std::vector{0.75, -1.5});
  written.put("alarm", std::vector{1.0, 1.0, 100.0, -0.48081053444470234, 0.23117877003300036, 0.0});
  written.put("a.examination", std::vector{1.0, 1.0, 5.0, 1.0, 5.0, 0.5, 5.0, 0.5});
  written.put("a.examination_by_rank", std::vector{-0.35222059358935187, 17.0, 0.0, 9.0, 8.0});
  EXPECT_EQ(written.fingerprint().hex(), "1d94bfcc402a6952eec56113743a1018");
  EXPECT_EQ(fingerprint_of(written.bytes()).hex(), "410a6610e71999ec1a97a30ad30add31");  // of the file
  StateReader reader = reader_of(written);
  PairHistory history(2, 2);
  ChangeAlarm alarm;
  Examination habits;
  history.load(reader);
  load_fields(alarm, reader, "alarm");
  load_fields(habits, reader, "a.");
  reader.require_end();
  EXPECT_EQ(history.observed(), 3);
  EXPECT_EQ(history.first_wins()[0], 1.0);
  StateWriter writer;
  history.save(writer);
  save_fields(alarm, writer, "alarm");
  save_fields(habits, writer, "a.");
  EXPECT_EQ(writer.bytes(), written.bytes());
}

/// One field of each kind.
class Example : public Stateful {
 public:
  void fields(StateFields& state) override {
    state.numbers("pair", first, second);
    state.numbers("flag", flag);
    state.number("set", set, [&](double value) { set = 2.0 * value; });
    state.sized("sized", sized);
    state.any("any", any);
    state.growing("growing", lineage, growing);
    state.text("text", text);
    state.require(first >= 0, "The first number is negative.");
  }

  std::int64_t first = 1;
  std::int64_t second = 2;
  bool flag = true;
  double set = 3.0;
  std::vector<float> sized = {4.0F, 5.0F};
  std::vector<std::int32_t> any = {6};
  Lineage lineage;
  std::vector<double> growing = {7.0};
  std::string text = "eight";
};

TEST(StateFieldsTest, OneFunctionWritesWhatItReads) {
  StateWriter expected;
  expected.put("pair", std::vector<std::int64_t>{1, 2});
  expected.put("flag", std::uint8_t{1});
  expected.put("set", 3.0);
  expected.put("sized", std::vector<float>{4.0F, 5.0F});
  expected.put("any", std::vector<std::int32_t>{6});
  expected.put("growing", std::vector<double>{7.0});
  expected.put_text("text", "eight");
  const Example saved;
  StateWriter writer;
  saved.save(writer);
  EXPECT_EQ(writer.bytes(), expected.bytes());

  Example loaded;
  loaded.first = loaded.second = 0;
  loaded.flag = false;
  loaded.sized = {0.0F, 0.0F};
  loaded.any.clear();
  loaded.growing = {0.0};
  loaded.text.clear();
  const std::uint64_t lineage = loaded.lineage.id();
  StateReader reader(writer.bytes(), "there");
  loaded.load(reader);
  EXPECT_EQ(loaded.first, 1);
  EXPECT_EQ(loaded.second, 2);
  EXPECT_TRUE(loaded.flag);
  EXPECT_EQ(loaded.set, 6.0);
  EXPECT_EQ(loaded.sized, saved.sized);
  EXPECT_EQ(loaded.any, saved.any);
  EXPECT_EQ(loaded.growing, saved.growing);
  EXPECT_EQ(loaded.text, "eight");
  EXPECT_NE(loaded.lineage.id(), lineage);
}

TEST(StateFieldsTest, RefusesBrokenRulesOnlyWhenItReads) {
  Example example;
  example.first = -1;
  StateWriter writer;
  example.save(writer);
  StateReader reader(writer.bytes(), "there");
  EXPECT_THROW(example.load(reader), IoError);
}

}  // namespace
}  // namespace olrank
