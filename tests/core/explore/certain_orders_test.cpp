#include "core/explore/certain_orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/explore/exploring_list.h"
#include "core/random/rng_stream.h"
#include "tests/core/explore/slow_orders.h"

namespace olrank {
namespace {

RngStream test_coins(std::uint32_t number) {
  return RngStream(make_key({.seed = 31, .purpose = Purpose::kProbe}), number);
}

/// Scores of one query, its documents best first, and squared widths.
struct ScoredQuery {
  std::vector<float> scores;
  std::vector<std::int32_t> by_score;
  std::vector<double> width_sq;
};

ScoredQuery random_query(RngStream& coins, std::size_t docs, double spread, double width) {
  ScoredQuery query;
  query.scores.resize(docs);
  const bool ties = coins.index(3) == 0;
  for (float& score : query.scores) {
    score = static_cast<float>(spread * (ties ? static_cast<double>(coins.index(6)) : coins.normal()));
  }
  query.by_score = first_places(docs);
  std::stable_sort(query.by_score.begin(), query.by_score.end(),
                   [&](std::int32_t i, std::int32_t j) { return query.scores[i] > query.scores[j]; });
  query.width_sq.assign(docs * docs, 0.0);
  for (std::size_t i = 0; i < docs; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double w = width * coins.uniform();
      query.width_sq[i * docs + j] = query.width_sq[j * docs + i] = coins.index(20) == 0 ? 0.0 : w * w;
    }
  }
  return query;
}

TEST(CertainOrdersTest, ByWidthMatchesTheDefinition) {
  // Away from rounding: σ to ½ in double is exact to 2⁻⁵³, and so are its tanh form, the root and the
  // products of numbers below 10, to a few units of 10⁻¹⁵ altogether.
  constexpr long double kRounding = 1e-14L;
  std::int64_t certain = 0;
  std::int64_t uncertain = 0;
  std::int64_t too_close = 0;
  OrderBits orders;
  std::uint32_t number = 0;
  for (const std::size_t docs : {0, 1, 2, 63, 64, 65, 130}) {
    for (const double alpha : {0.0, 0.01, 0.3, 1.0, 5.0}) {
      for (const double spread : {1e-6, 0.3, 3.0, 300.0}) {
        RngStream coins = test_coins(++number);
        const ScoredQuery query = random_query(coins, docs, spread, std::min(1.0, spread));
        certain_by_width({alpha, 0.0}, query.scores, query.by_score, query.width_sq, orders);
        ASSERT_EQ(orders.docs(), static_cast<std::int64_t>(docs));
        for (std::size_t a = 0; a < docs; ++a) {
          for (std::size_t b = 0; b < docs; ++b) {
            const auto i = static_cast<std::size_t>(query.by_score[a]);
            const auto j = static_cast<std::size_t>(query.by_score[b]);
            const bool marked = orders.certain(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b));
            if (b <= a) {
              ASSERT_FALSE(marked);
              continue;
            }
            const long double z =
                static_cast<long double>(query.scores[i]) - static_cast<long double>(query.scores[j]);
            const long double margin =
                1.0L / (1.0L + std::exp(-z)) -
                alpha * std::sqrt(static_cast<long double>(query.width_sq[i * docs + j])) - 0.5L;
            // Equal scores are exactly uncertain: ½ − αw is never above ½.
            if (z != 0.0L && !(std::fabs(margin) > kRounding)) {
              ++too_close;
              continue;
            }
            ASSERT_EQ(marked, z != 0.0L && margin > 0.0L)
                << docs << " docs, alpha " << alpha << ", z " << double(z);
            ++(marked ? certain : uncertain);
          }
        }
      }
    }
  }
  EXPECT_GT(certain, 25'000);
  EXPECT_GT(uncertain, 25'000);
  // Hardly anything comes this close.
  EXPECT_LT(too_close, (certain + uncertain) / 8);
}

// tests/core/math says which differences and widths are certain; here they meet the rule, tie and all.
TEST(CertainOrdersTest, ByWidthKeepsToItsRuleAtTheEdges) {
  const std::vector<float> scores = {1.0F, 0.75F, 0.5F, 0.0F, -0.0F};
  const std::vector<std::int32_t> by_score = {0, 1, 2, 3, 4};
  OrderBits orders;
  const auto certain = [&](double least, double width_sq) {
    certain_by_width({0.1, least}, scores, by_score, std::vector<double>(25, width_sq), orders);
    return std::vector{orders.certain(0, 1), orders.certain(0, 2), orders.certain(2, 3),
                       orders.certain(3, 4)};
  };
  EXPECT_EQ(certain(0.0, 0.0), (std::vector{true, true, true, false}));
  EXPECT_EQ(certain(0.25, 0.0), (std::vector{false, true, true, false}));
  for (const double wrong :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(certain(0.0, wrong), std::vector<bool>(4, false));
}

TEST(CertainOrdersTest, ByVoteRequiresUnanimity) {
  Scratch scratch;
  std::int64_t certain = 0;
  std::int64_t uncertain = 0;
  OrderBits orders;
  std::uint32_t number = 1000;
  for (const std::size_t docs : {0, 1, 2, 63, 64, 65, 130}) {
    for (const std::size_t members : {1, 2, 5}) {
      for (const double least : {0.0, 0.25}) {
        RngStream coins = test_coins(++number);
        std::vector<float> truth(docs);
        for (float& score : truth) score = static_cast<float>(coins.index(40)) / 8.0F;
        std::vector<float> scores;
        for (std::size_t member = 0; member < members; ++member) {
          for (const float score : truth) {
            scores.push_back(score + static_cast<float>(coins.index(5)) / 8.0F);
          }
        }
        std::vector<double> mean(docs, 0.0);
        for (std::size_t at = 0; at < scores.size(); ++at) mean[at % docs] += double{scores[at]};
        std::vector<std::int32_t> by_score = first_places(docs);
        std::stable_sort(by_score.begin(), by_score.end(),
                         [&](std::int32_t i, std::int32_t j) { return mean[i] > mean[j]; });
        certain_by_vote(static_cast<std::int64_t>(members), least, scores, by_score, orders, scratch);
        // Eighths are exact, so there is no rounding to keep away from.
        for (std::size_t a = 0; a < docs; ++a) {
          for (std::size_t b = 0; b < docs; ++b) {
            const auto i = static_cast<std::size_t>(by_score[a]);
            const auto j = static_cast<std::size_t>(by_score[b]);
            std::size_t votes = 0;
            for (std::size_t member = 0; member < members; ++member) {
              votes += double{scores[member * docs + i]} - double{scores[member * docs + j]} > least;
            }
            const bool expected = a != b && votes == members;
            ASSERT_EQ(orders.certain(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)), expected)
                << docs << " docs, " << members << " members";
            ++(expected ? certain : uncertain);
          }
        }
      }
    }
  }
  EXPECT_GT(certain, 10'000);
  EXPECT_GT(uncertain, 10'000);
}

TEST(CertainOrdersTest, ClosureMatchesWarshall) {
  std::int64_t added = 0;
  for (std::uint32_t number = 0; number < 300; ++number) {
    RngStream coins = test_coins(2000 + number);
    constexpr std::size_t kEdges[] = {0, 1, 63, 64, 65, 130};
    const std::size_t docs = number < 60 ? kEdges[number % 6] : coins.index(81);
    // From a few orders, whose closure is deep, to nearly all.
    constexpr double kShares[] = {0.0, 0.02, 0.1, 0.5, 0.95};
    const OrderTable table = random_table(coins, docs, kShares[coins.index(5)]);
    OrderBits orders = bits_of(table);
    close_transitively(orders);
    const OrderTable expected = slow_closure(table);
    ASSERT_EQ(table_of(orders), expected) << number << ", " << docs << " docs";
    if (expected != table) ++added;
    const OrderTable once = table_of(orders);
    close_transitively(orders);
    ASSERT_EQ(table_of(orders), once);
  }
  EXPECT_GT(added, 100);
}

TEST(AvailablePlacesTest, MatchTheDefinitionAfterEveryPlace) {
  AvailablePlaces available;
  std::int64_t choices = 0;
  for (std::uint32_t number = 0; number < 60; ++number) {
    RngStream coins(make_key({.seed = 33, .purpose = Purpose::kProbe}), number);
    constexpr std::size_t kDocs[] = {1, 2, 63, 64, 65, 127, 128, 129, 150, 200};
    constexpr double kShares[] = {0.0, 0.02, 0.3, 0.9, 1.0};
    const std::size_t docs = kDocs[number % 10];
    const OrderTable table = random_table(coins, docs, kShares[coins.index(5)]);
    const OrderBits orders = bits_of(table);
    // All places at first, then a part of them.
    const bool all = number < 20;
    const std::size_t begin = all ? 0 : coins.index(static_cast<std::uint32_t>(docs));
    const std::size_t end = all ? docs : begin + coins.index(static_cast<std::uint32_t>(docs - begin + 1));
    available.reset(orders, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
    std::vector<bool> taken(docs, false);
    for (std::size_t rank = begin; rank < end; ++rank) {
      const auto expected = slow_available(table, taken, begin, end);
      ASSERT_EQ(available.count(), std::ssize(expected)) << number << ", rank " << rank;
      const std::int64_t n = coins.index(static_cast<std::uint32_t>(expected.size()));
      const std::int64_t place = available.take(n);
      ASSERT_EQ(place, expected[n]) << number << ", rank " << rank;
      taken[place] = true;
      choices += std::ssize(expected) - 1;
    }
    ASSERT_EQ(available.count(), 0) << number;
  }
  EXPECT_GT(choices, 10'000);
}

}  // namespace
}  // namespace olrank
