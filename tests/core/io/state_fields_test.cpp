#include "core/io/state_fields.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/feedback/examination.h"
#include "core/feedback/pair_history.h"

namespace olrank {
namespace {

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
