#include "core/io/json.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace olrank
