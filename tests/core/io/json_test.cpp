#include "core/io/json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <string>

#include "tests/core/metrics/small_data.h"

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

}  // namespace
}  // namespace olrank
