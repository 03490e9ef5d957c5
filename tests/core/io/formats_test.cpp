#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include "core/io/atomic_file.h"
#include "core/io/containers.h"
#include "core/io/fingerprint.h"
#include "core/io/json.h"
#include "tests/core/metrics/small_data.h"
#include "tests/support/temporary_folder.h"

namespace olrank {
namespace {

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

/// The examples of the format's own description.
TEST(ProtobufMessage, WritesDocumentedExamples) {
  ProtobufMessage number;
  number.put_number(1, 150);
  EXPECT_EQ(number.bytes(), std::string("\x08\x96\x01"));
  ProtobufMessage text;
  text.put_text(2, "testing");
  EXPECT_EQ(text.bytes(), std::string("\x12\x07testing"));
  ProtobufMessage nested;
  nested.put_message(3, number);
  EXPECT_EQ(nested.bytes(), std::string("\x1a\x03\x08\x96\x01"));
}

TEST(ProtobufMessage, WritesVarintsOfEveryLength) {
  ProtobufMessage message;
  message.put_number(1, 0);
  message.put_number(16, 127);
  message.put_number(1, -1);
  EXPECT_EQ(message.bytes(),
            std::string("\x08\x00\x80\x01\x7F\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 16));
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

TEST(StoredZip, PythonReadsIt) {
  if (std::system("python3 -c 'import zipfile' 2>/dev/null") != 0) GTEST_SKIP() << "python3 is missing";
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.zip", example_zip());
  std::ofstream(folder / "check.py") << R"(
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    assert archive.testzip() is None
    assert archive.namelist() == ["a/first", "a/empty", "b"]
    assert [archive.read(name) for name in archive.namelist()] == [b"x" * 1000, b"", b"123456789"]
)";
  const std::string command =
      "python3 '" + (folder / "check.py").string() + "' '" + (folder / "a.zip").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(FingerprintTest, IsXxh128) {
  // The published value of XXH3-128 for empty input.
  EXPECT_EQ(fingerprint_of("").hex(), "99aa06d3014798d86001c324468d497f");
}

TEST(FingerprintTest, IndependentOfPieces) {
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
