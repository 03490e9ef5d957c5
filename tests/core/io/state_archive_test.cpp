#include "core/io/state_archive.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "core/error.h"
#include "core/io/atomic_file.h"
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

TEST(StateArchiveTest, ReadsBackWhatWasPut) {
  const StateWriter state = example_state();
  StateReader reader(state.bytes(), "there");
  read_example(reader);
  reader.require_end();
  EXPECT_EQ(example_state().bytes(), state.bytes());
  EXPECT_EQ(example_state().fingerprint(), fingerprint_of(state.bytes()));
}

TEST(StateArchiveTest, SkipsToAName) {
  const StateWriter state = example_state();
  StateReader reader(state.bytes(), "there");
  reader.skip_to("round");
  reader.skip_to("nothing");
  EXPECT_TRUE(reader.get<double>("nothing").empty());
  reader.skip_to("count");
  EXPECT_EQ(reader.get_one<std::uint64_t>("count"), std::uint64_t{1} << 63);
  reader.require_end();
  StateReader again(state.bytes(), "there");
  EXPECT_EQ(message_of<IoError>([&] { again.skip_to("counts"); }),
            "there: The saved state ends where 'counts' should stand.");
}

TEST(StateArchiveTest, EveryFieldIsRefusedUnderAnotherName) {
  const std::string bytes = example_state().bytes();
  const std::vector<std::string> names = {"round",   "theta",  "weights", "bytes",
                                          "nothing", "recipe", "count"};
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
      StateReader reader(bytes, "there");
      read_example(reader, static_cast<int>(entry));
      EXPECT_EQ(
          message_of<IoError>([&] { gets[entry](reader, wrong); }),
          fmt::format("there: The saved state has '{}' where '{}' should stand: it belongs to another "
                      "ranker or version.",
                      names[entry], wrong));
    }
  }
}

template <class T>
void expect_type_refused(const std::string& bytes, int entry, const std::string& name) {
  StateReader reader(bytes, "there");
  read_example(reader, entry);
  EXPECT_EQ(message_of<IoError>([&] { reader.get<T>(name); }),
            fmt::format("there: The saved state has '{0}' where '{0}' should stand: it belongs to another "
                        "ranker or version.",
                        name));
}

TEST(StateArchiveTest, EveryFieldIsRefusedAsAnotherType) {
  const std::string bytes = example_state().bytes();
  expect_type_refused<std::uint64_t>(bytes, 0, "round");
  expect_type_refused<double>(bytes, 0, "round");
  expect_type_refused<std::int32_t>(bytes, 0, "round");
  expect_type_refused<float>(bytes, 1, "theta");
  expect_type_refused<std::int64_t>(bytes, 1, "theta");
  expect_type_refused<double>(bytes, 2, "weights");
  expect_type_refused<std::int8_t>(bytes, 3, "bytes");
  expect_type_refused<std::uint16_t>(bytes, 3, "bytes");
  expect_type_refused<float>(bytes, 4, "nothing");
  expect_type_refused<std::int32_t>(bytes, 5, "recipe");
  expect_type_refused<std::int64_t>(bytes, 6, "count");
}

TEST(StateArchiveTest, EveryFieldIsRefusedWithAnotherCount) {
  const std::string bytes = example_state().bytes();
  const auto shape = [&](int entry, const std::string& name, auto value, std::size_t found,
                         std::size_t asked) {
    StateReader reader(bytes, "there");
    read_example(reader, entry);
    std::vector<decltype(value)> values(asked);
    EXPECT_EQ(
        message_of<IoError>([&] { reader.get_into(name, std::span(values)); }),
        fmt::format("there: The saved state has {} values of '{}' instead of {}: it belongs to another "
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

TEST(StateArchiveTest, MoreThanIsKnownIsRefused) {
  const std::string bytes = example_state().bytes();
  for (int entries = 0; entries < 7; ++entries) {
    StateReader reader(bytes, "there");
    read_example(reader, entries);
    EXPECT_EQ(message_of<IoError>([&] { reader.require_end(); }),
              "there: The saved state holds more than this ranker knows: it belongs to another ranker or "
              "version.");
  }
}

TEST(StateArchiveTest, CutAtEveryByteItIsRefusedWhereItEnds) {
  const std::string whole = example_state().bytes();
  int ends = 0;
  int cut = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string bytes = whole.substr(0, size);
    StateReader reader(bytes, "there");
    const std::string message = message_of<IoError>([&] { read_example(reader); });
    ends += message.find("there: The saved state ends where '") == 0 ? 1 : 0;
    cut += message.find("there: The saved state is cut off within '") == 0 ? 1 : 0;
    ASSERT_EQ(static_cast<std::size_t>(ends + cut), size + 1) << size << ": " << message;
  }
  // Sixteen bytes of each of seven headers, and everything behind them.
  EXPECT_EQ(ends, 7 * 16);
  EXPECT_GT(cut, 60);
}

TEST(StateArchiveTest, CountsBeyondTheBytesAreNoOverflow) {
  std::string bytes = example_state().bytes();
  for (const std::uint64_t count : {std::uint64_t{2}, std::uint64_t{1} << 61, ~std::uint64_t{0}}) {
    std::string changed = bytes.substr(0, 16 + 5 + 8);  // 'round' alone
    std::memcpy(changed.data(), &count, sizeof count);
    StateReader reader(changed, "there");
    EXPECT_EQ(message_of<IoError>([&] { reader.get<std::int64_t>("round"); }),
              "there: The saved state is cut off within 'round'.");
  }
}

TEST(StateArchiveTest, AFileReadsBack) {
  const TemporaryFolder folder;
  write_state_file(folder / "state", example_state());
  EXPECT_EQ(read_state_file(folder / "state"), example_state().bytes());
  write_state_file(folder / "empty", StateWriter());
  EXPECT_EQ(read_state_file(folder / "empty"), "");
  EXPECT_NE(message_of<IoError>([&] { read_state_file(folder / "missing"); }), kNoError);
}

TEST(StateArchiveTest, AFileCutAtAnyByteIsRefused) {
  const TemporaryFolder folder;
  const auto path = folder / "state";
  write_state_file(path, example_state());
  const std::string whole = read_file(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_file_atomically(path, whole.substr(0, size));
    EXPECT_EQ(message_of<IoError>([&] { read_state_file(path); }),
              path.string() + (size < 40 ? ": This is no saved state of olrank."
                                         : ": The saved state is damaged: its checksum does not fit."))
        << size;
  }
  write_file_atomically(path, whole + '\0');
  EXPECT_EQ(message_of<IoError>([&] { read_state_file(path); }),
            path.string() + ": The saved state is damaged: its checksum does not fit.");
}

TEST(StateArchiveTest, AnyFlippedBitIsRefused) {
  const TemporaryFolder folder;
  const auto path = folder / "state";
  write_state_file(path, example_state());
  const std::string whole = read_file(path);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    if (bit / 8 >= 12 && bit / 8 < 16) continue;  // these four bytes mean nothing
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(static_cast<unsigned char>(changed[bit / 8]) ^ (1U << (bit % 8)));
    write_file_atomically(path, changed);
    const std::string message = message_of<IoError>([&] { read_state_file(path); });
    const std::string sentence = bit / 8 < 8 ? ": This is no saved state of olrank."
                                 : bit / 8 < 12
                                     ? ": The saved state has format version "
                                     : ": The saved state is damaged: its checksum does not fit.";
    ASSERT_EQ(message.find(path.string() + sentence), 0U) << bit << ": " << message;
  }
}

TEST(StateArchiveTest, AnotherFormatVersionIsNamed) {
  const TemporaryFolder folder;
  const auto path = folder / "state";
  write_state_file(path, example_state());
  std::string bytes = read_file(path);
  bytes[8] = 9;
  write_file_atomically(path, bytes);
  EXPECT_EQ(
      message_of<IoError>([&] { read_state_file(path); }),
      path.string() +
          ": The saved state has format version 9; this olrank reads version 1. Go on with the olrank "
          "that wrote it, or start anew with --force.");
}

}  // namespace
}  // namespace olrank
