#include "core/math/dcg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace olrank {
namespace {

TEST(ScoreOrderTest, DescendsByScoreThenIndex) {
  EXPECT_TRUE(comes_before(2.0F, 7, 1.0F, 0));
  EXPECT_FALSE(comes_before(1.0F, 0, 2.0F, 7));
  EXPECT_TRUE(comes_before(1.0F, 3, 1.0F, 4));
  EXPECT_FALSE(comes_before(1.0F, 4, 1.0F, 3));
  EXPECT_FALSE(comes_before(1.0F, 3, 1.0F, 3));
}

TEST(ScoreOrderTest, ZerosTieAndInfinitiesAreScores) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(comes_before(-0.0F, 0, 0.0F, 1));
  EXPECT_FALSE(comes_before(0.0F, 1, -0.0F, 0));
  EXPECT_TRUE(comes_before(kInfinity, 1, std::numeric_limits<float>::max(), 0));
  EXPECT_TRUE(comes_before(std::numeric_limits<float>::lowest(), 1, -kInfinity, 0));
  EXPECT_TRUE(comes_before(kInfinity, 0, kInfinity, 1));
}

TEST(ScoreOrderTest, NanComesBeforeNothing) {
  EXPECT_FALSE(comes_before(std::nanf(""), 0, 1.0F, 1));
  EXPECT_FALSE(comes_before(1.0F, 0, std::nanf(""), 1));
}

// A strict total order: of two different documents exactly one comes first, and the relation is transitive.
TEST(ScoreOrderTest, IsATotalOrder) {
  const std::vector<float> scores = {1.0F, -1.0F, 1.0F, 0.0F, -0.0F, 2.0F, -1.0F};
  const auto before = [&](std::size_t a, std::size_t b) {
    return comes_before(scores[a], static_cast<std::int64_t>(a), scores[b], static_cast<std::int64_t>(b));
  };
  for (std::size_t a = 0; a < scores.size(); ++a) {
    for (std::size_t b = 0; b < scores.size(); ++b) {
      EXPECT_EQ(before(a, b) + before(b, a), a == b ? 0 : 1);
      for (std::size_t c = 0; c < scores.size(); ++c) {
        EXPECT_TRUE(!before(a, b) || !before(b, c) || before(a, c));
      }
    }
  }
}

}  // namespace
}  // namespace olrank
