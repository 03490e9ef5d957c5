#include "core/data/letor_number.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "core/random/rng_stream.h"
#include "tests/support/sanitized.h"

namespace olrank {
namespace {

/// The number as std::from_chars reads it, where that is within float's range.
void expect_same_as_from_chars(const std::string& text, std::int64_t& compared) {
  float expected = 0.0F;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), expected);
  const std::string ended = text + "\n";
  float value = 0.0F;
  const char* end = parse_float(ended.data(), value);
  if (error == std::errc::invalid_argument) {
    EXPECT_EQ(end, nullptr) << text;
    return;
  }
  ASSERT_NE(end, nullptr) << text;
  ASSERT_EQ(end - ended.data(), rest - text.data()) << text;
  if (error == std::errc::result_out_of_range) {
    EXPECT_TRUE(std::isinf(value) || value == 0.0F) << text;
    return;
  }
  ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(expected)) << text;
  ++compared;
}

class RandomTexts {
 public:
  explicit RandomTexts(std::uint32_t number)
      : rng_(make_key({.seed = 4, .purpose = Purpose::kProbe}), number) {}

  std::string next() {
    std::string text;
    switch (rng_.index(6)) {
      case 0:
        return digits(1 + rng_.index(6)) + "." + digits(1 + rng_.index(7));
      case 1:
        return "0." + digits(rng_.index(20));
      case 2:
        return "-" + digits(1 + rng_.index(22));
      case 3:
        text = digits(rng_.index(12)) + "." + digits(1 + rng_.index(25));
        return text + "e" + (rng_.index(2) == 0 ? "-" : "") + fmt::format("{}", rng_.index(50));
      case 4:
        return fmt::format("{}", std::bit_cast<float>(finite_bits()));
      default:
        return near_middle();
    }
  }

 private:
  std::string digits(std::uint32_t count) {
    std::string text;
    for (std::uint32_t i = 0; i < count; ++i) text += static_cast<char>('0' + rng_.index(10));
    return text;
  }
  std::uint32_t finite_bits() {
    for (;;) {
      const std::uint32_t bits = rng_.next_bits();
      if ((bits >> 23 & 0xFF) != 0xFF) return bits;
    }
  }
  /// On, just above or just below the middle between two floats: where rounding twice goes wrong.
  std::string near_middle() {
    const double middle = (static_cast<double>(rng_.next_bits() >> 8 | 1U << 23) + 0.5) *
                          std::ldexp(1.0, static_cast<int>(rng_.index(60)) - 40);
    std::string text = fmt::format("{:.{}g}", middle, 15 + rng_.index(30));
    if (text.find('e') == std::string::npos && text.find('.') != std::string::npos) {
      if (rng_.index(2) == 0) text += digits(rng_.index(4));
    }
    return text;
  }

  RngStream rng_;
};

TEST(LetorNumber, MatchesFromCharsOnThreeMillionRandomStrings) {
  std::int64_t compared = 0;
  constexpr std::uint32_t kBlocks = kSanitized ? 3 : 30;
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    RandomTexts texts(block);
    for (int i = 0; i < 100'000; ++i) {
      expect_same_as_from_chars(texts.next(), compared);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(compared, kBlocks * 83'000);
}

TEST(LetorNumber, ReadsBackEveryPrintedFloatExactly) {
  // A stride through all bit patterns, coprime to powers of two.
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 9973) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (!std::isfinite(value)) continue;
    char text[64];
    *std::to_chars(text, text + sizeof text - 1, value).ptr = '\n';
    float read = 0.0F;
    ASSERT_NE(parse_float(text, read), nullptr);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(read), bits);
  }
}

TEST(LetorNumber, HandlesEdgesOfFloatRange) {
  const auto read = [](const std::string& text) {
    float value = -1.0F;
    const std::string ended = text + "\n";
    EXPECT_NE(parse_float(ended.data(), value), nullptr) << text;
    return value;
  };
  EXPECT_EQ(read("1e-60"), 0.0F);
  EXPECT_TRUE(std::signbit(read("-1e-60")));
  EXPECT_EQ(read("1e-999999999999999999999"), 0.0F);
  EXPECT_EQ(read("0.00000000000000000000000000000000000000000000000000000000000000000001"), 0.0F);
  EXPECT_EQ(read("1e-45"), 0x1p-149F);
  EXPECT_TRUE(std::isinf(read("1e39")));
  EXPECT_TRUE(std::isinf(read("-1e999999999999999999999")));
  EXPECT_TRUE(std::isinf(read("1" + std::string(60, '0'))));
  EXPECT_EQ(read("1" + std::string(60, '0') + "e-60"), 1.0F);
  EXPECT_EQ(read("0." + std::string(60, '0') + "1e61"), 1.0F);
  EXPECT_EQ(read("3.4028234663852886e38"), std::numeric_limits<float>::max());
  EXPECT_EQ(read("0e99999"), 0.0F);
  EXPECT_EQ(read("5."), 5.0F);
  EXPECT_EQ(read(".5"), 0.5F);
}

TEST(LetorNumber, RefusesNonNumbers) {
  for (const char* text :
       {"\n", "-\n", ".\n", "-.\n", "e5\n", "nan\n", "inf\n", "-inf\n", "+1\n", " 1\n"}) {
    float value = 0.0F;
    EXPECT_EQ(parse_float(text, value), nullptr) << text;
  }
}

}  // namespace
}  // namespace olrank
