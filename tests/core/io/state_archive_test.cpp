#include "core/io/state_archive.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <cmath>
#include <cstdlib>
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

/// Reads the first `entries` of what example_state() holds.
void read_example(StateReader& reader, int entries = 7) {
  if (entries > 0) {
    EXPECT_EQ(reader.get_one<std::int64_t>("round"), -7);
  }
  if (entries > 1) {
    const auto theta = reader.get<double>("theta");
    ASSERT_EQ(theta.size(), 3U);
    EXPECT_EQ(theta[0], 0.1);
    EXPECT_TRUE(theta[1] == 0.0 && std::signbit(theta[1]));
    EXPECT_EQ(theta[2], 1e-310);
  }
  if (entries > 2) {
    EXPECT_EQ(reader.get<float>("weights"), (std::vector<float>{1.5F, -2.5F}));
  }
  if (entries > 3) {
    std::vector<std::uint8_t> bytes(2);
    reader.get_into("bytes", std::span(bytes));
    EXPECT_EQ(bytes, (std::vector<std::uint8_t>{0, 255}));
  }
  if (entries > 4) {
    EXPECT_TRUE(reader.get<double>("nothing").empty());
  }
  if (entries > 5) {
    EXPECT_EQ(reader.get_text("recipe"), "α = 0.1\n");
  }
  if (entries > 6) {
    EXPECT_EQ(reader.get_one<std::uint64_t>("count"), std::uint64_t{1} << 63);
  }
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
  const std::vector<std::string> names = {"round",   "theta",  "weights", "bytes",
                                          "nothing", "recipe", "count"};
  const std::vector<std::string> dtypes = {"I64", "F64", "F32", "U8", "F64", "I8", "U64"};
  const std::vector<std::int64_t> counts = {1, 3, 2, 2, 0, 9, 1};
  const std::vector<std::size_t> item_sizes = {8, 8, 4, 1, 8, 1, 8};
  ASSERT_EQ(view.tensors.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(view.tensors[i].name, names[i]);
    EXPECT_EQ(view.tensors[i].dtype, dtypes[i]);
    EXPECT_EQ(view.tensors[i].shape, std::vector<std::int64_t>{counts[i]});
    // Libraries that map the file need aligned values.
    EXPECT_EQ(static_cast<std::size_t>(view.tensors[i].bytes.data() - bytes.data()) % item_sizes[i], 0U);
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
  StateReader again = reader_of(example_state());
  EXPECT_EQ(message_of<IoError>([&] { again.skip_to("counts"); }),
            "there: The state ends where 'counts' is expected: it belongs to another ranker or version.");
}

TEST(StateArchiveTest, RefusesEveryFieldUnderAnotherName) {
  const std::vector<std::string> names = {"round",   "theta",  "weights", "bytes",
                                          "nothing", "recipe", "count"};
  const std::vector<std::string> dtypes = {"I64", "F64", "F32", "U8", "F64", "I8", "U64"};
  const std::vector<std::function<void(StateReader&, const std::string&)>> gets = {
      [](StateReader& r, const std::string& name) { r.get_one<std::int64_t>(name); },
      [](StateReader& r, const std::string& name) { r.get<double>(name); },
      [](StateReader& r, const std::string& name) { r.get<float>(name); },
      [](StateReader& r, const std::string& name) { r.get<std::uint8_t>(name); },
      [](StateReader& r, const std::string& name) { r.get<double>(name); },
      [](StateReader& r, const std::string& name) { r.get_text(name); },
      [](StateReader& r, const std::string& name) { r.get_one<std::uint64_t>(name); }};
  for (std::size_t entry = 0; entry < names.size(); ++entry) {
    for (const std::string& wrong : {std::string("other"), names[entry] + "s", std::string()}) {
      StateReader reader = reader_of(example_state());
      read_example(reader, static_cast<int>(entry));
      EXPECT_EQ(message_of<IoError>([&] { gets[entry](reader, wrong); }),
                fmt::format("there: The state has '{}' ({}) where '{}' ({}) is expected: it belongs to "
                            "another ranker or version.",
                            names[entry], dtypes[entry], wrong, dtypes[entry]));
    }
  }
}

template <class T>
void expect_type_refused(int entry, const std::string& name, const std::string& found,
                         const std::string& expected) {
  StateReader reader = reader_of(example_state());
  read_example(reader, entry);
  EXPECT_EQ(message_of<IoError>([&] { reader.get<T>(name); }),
            fmt::format("there: The state has '{0}' ({1}) where '{0}' ({2}) is expected: it belongs to "
                        "another ranker or version.",
                        name, found, expected));
}

TEST(StateArchiveTest, RefusesEveryFieldAsAnotherType) {
  expect_type_refused<std::uint64_t>(0, "round", "I64", "U64");
  expect_type_refused<double>(0, "round", "I64", "F64");
  expect_type_refused<std::int32_t>(0, "round", "I64", "I32");
  expect_type_refused<float>(1, "theta", "F64", "F32");
  expect_type_refused<std::int64_t>(1, "theta", "F64", "I64");
  expect_type_refused<double>(2, "weights", "F32", "F64");
  expect_type_refused<std::int8_t>(3, "bytes", "U8", "I8");
  expect_type_refused<std::uint16_t>(3, "bytes", "U8", "U16");
  expect_type_refused<float>(4, "nothing", "F64", "F32");
  expect_type_refused<std::int32_t>(5, "recipe", "I8", "I32");
  expect_type_refused<std::int64_t>(6, "count", "U64", "I64");
}

TEST(StateArchiveTest, RefusesEveryFieldWithAnotherCount) {
  const auto shape = [&](int entry, const std::string& name, auto value, std::size_t found,
                         std::size_t asked) {
    StateReader reader = reader_of(example_state());
    read_example(reader, entry);
    std::vector<decltype(value)> values(asked);
    EXPECT_EQ(message_of<IoError>([&] { reader.get_into(name, std::span(values)); }),
              fmt::format("there: The state has {} values of '{}' instead of {}: it belongs to another "
                          "shape.",
                          found, name, asked));
  };
  shape(0, "round", std::int64_t{}, 1, 2);
  shape(0, "round", std::int64_t{}, 1, 0);
  shape(1, "theta", double{}, 3, 2);
  shape(1, "theta", double{}, 3, 1);
  shape(2, "weights", float{}, 2, 3);
  shape(3, "bytes", std::uint8_t{}, 2, 0);
  shape(4, "nothing", double{}, 0, 1);
  shape(6, "count", std::uint64_t{}, 1, 3);
}

TEST(StateArchiveTest, RefusesUnreadEntries) {
  const std::vector<std::string> names = {"round",   "theta",  "weights", "bytes",
                                          "nothing", "recipe", "count"};
  for (int entries = 0; entries < 7; ++entries) {
    StateReader reader = reader_of(example_state());
    read_example(reader, entries);
    EXPECT_EQ(message_of<IoError>([&] { reader.require_end(); }),
              fmt::format("there: The state has '{}', which this ranker does not know: it belongs to "
                          "another ranker or version.",
                          names[entries]));
  }
}

TEST(StateArchiveTest, RefusesAStateThatEndsEarly) {
  StateWriter state;
  state.put("round", std::int64_t{-7});
  StateReader reader = reader_of(state);
  EXPECT_EQ(message_of<IoError>([&] { read_example(reader); }),
            "there: The state ends where 'theta' is expected: it belongs to another ranker or version.");
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

// A history, an alarm and habits of reading, written when classes still saved and loaded in two functions.
constexpr std::string_view kWritten =
    "c0020000000000007b225f5f6d657461646174615f5f223a7b226f6c72616e6b5f7374617465223a2232222c22636865"
    "636b73756d223a223164393462666363343032613639353265656335363131333734336131303138227d2c2268697374"
    "6f72792e6665617475726573223a7b226474797065223a22493634222c227368617065223a5b315d2c22646174615f6f"
    "666673657473223a5b302c385d7d2c22686973746f72792e6f62736572766564223a7b226474797065223a2249363422"
    "2c227368617065223a5b315d2c22646174615f6f666673657473223a5b382c31365d7d2c22686973746f72792e646f63"
    "73223a7b226474797065223a22493634222c227368617065223a5b325d2c22646174615f6f666673657473223a5b3136"
    "2c33325d7d2c22686973746f72792e636f756e74223a7b226474797065223a22463634222c227368617065223a5b315d"
    "2c22646174615f6f666673657473223a5b33322c34305d7d2c22686973746f72792e66697273745f77696e73223a7b22"
    "6474797065223a22463634222c227368617065223a5b315d2c22646174615f6f666673657473223a5b34302c34385d7d"
    "2c22686973746f72792e726f7773223a7b226474797065223a22463634222c227368617065223a5b325d2c2264617461"
    "5f6f666673657473223a5b34382c36345d7d2c22616c61726d223a7b226474797065223a22463634222c227368617065"
    "223a5b365d2c22646174615f6f666673657473223a5b36342c3131325d7d2c22612e6578616d696e6174696f6e223a7b"
    "226474797065223a22463634222c227368617065223a5b385d2c22646174615f6f666673657473223a5b3131322c3137"
    "365d7d2c22612e6578616d696e6174696f6e5f62795f72616e6b223a7b226474797065223a22463634222c2273686170"
    "65223a5b355d2c22646174615f6f666673657473223a5b3137362c3231365d7d7d202020202020200200000000000000"
    "0300000000000000070000000000000008000000000000000000000000000840000000000000f03f000000000000e83f"
    "000000000000f8bf000000000000f03f000000000000f03f00000000000059402ac9408c99c5debf701e69144497cd3f"
    "0000000000000000000000000000f03f000000000000f03f0000000000001440000000000000f03f0000000000001440"
    "000000000000e03f0000000000001440000000000000e03f106a9c3ec88ad6bf00000000000031400000000000000000"
    "00000000000022400000000000002040";

std::string written() {
  std::string bytes;
  for (std::size_t at = 0; at < kWritten.size(); at += 2)
    bytes += static_cast<char>(std::stoi(std::string(kWritten.substr(at, 2)), nullptr, 16));
  return bytes;
}

TEST(StateFieldsTest, ReadsAndWritesTheBytesOfEarlierVersions) {
  StateReader reader(written(), "there");
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
  EXPECT_EQ(writer.bytes(), written());
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
