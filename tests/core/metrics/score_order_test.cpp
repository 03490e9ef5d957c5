#include "core/metrics/list_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/core/metrics/small_data.h"

namespace olrank {
namespace {

template <class Score>
std::vector<std::int32_t> ranked(const std::vector<Score>& scores) {
  Scratch scratch;
  std::vector<std::int32_t> order(scores.size());
  EXPECT_EQ(order_by_score(std::span<const Score>(scores), order, scratch), -1);
  return order;
}

template <class Score>
class ScoreOrderTest : public testing::Test {};
using ScoreTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(ScoreOrderTest, ScoreTypes);

TYPED_TEST(ScoreOrderTest, MatchesAStableDescendingSort) {
  for (std::uint32_t round = 0; round < 200; ++round) {
    RngStream coins = test_coins(5000 + round);
    const std::uint32_t docs = round < 4 ? round : coins.index(200);
    std::vector<TypeParam> scores;
    for (const double score : random_scores(coins, docs, coins.index(2) == 0)) {
      scores.push_back(static_cast<TypeParam>(score));
    }
    std::vector<std::int32_t> expected(docs);
    std::iota(expected.begin(), expected.end(), 0);
    std::stable_sort(expected.begin(), expected.end(),
                     [&](std::int32_t a, std::int32_t b) { return scores[a] > scores[b]; });
    EXPECT_EQ(ranked(scores), expected);
    for (const std::uint32_t top : {1U, 5U, 31U, 32U, 33U, 150U}) {
      Scratch scratch;
      std::vector<std::int32_t> order(std::min(top, docs));
      EXPECT_EQ(order_top_by_score(std::span<const TypeParam>(scores), order, scratch), -1);
      EXPECT_TRUE(std::equal(order.begin(), order.end(), expected.begin())) << top << " of " << docs;
    }
  }
}

TYPED_TEST(ScoreOrderTest, OrdersInfinitiesAndExtremes) {
  using Limits = std::numeric_limits<TypeParam>;
  const std::vector<TypeParam> scores = {
      -Limits::infinity(), Limits::denorm_min(),  -0.0,          0.0,
      Limits::infinity(),  -Limits::denorm_min(), Limits::max(), Limits::lowest()};
  EXPECT_EQ(ranked(scores), (std::vector<std::int32_t>{4, 6, 1, 2, 3, 5, 7, 0}));  // the zeros tie
}

TYPED_TEST(ScoreOrderTest, ReportsTheFirstNan) {
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  Scratch scratch;
  for (const std::vector<TypeParam>& scores : {std::vector<TypeParam>{1, 2, nan, -nan}, {0, 0, -nan, 1}}) {
    std::vector<std::int32_t> order(scores.size());
    EXPECT_EQ(order_by_score(std::span<const TypeParam>(scores), order, scratch), 2);
    order.resize(1);
    EXPECT_EQ(order_top_by_score(std::span<const TypeParam>(scores), order, scratch), 2);
  }
}

}  // namespace
}  // namespace olrank
