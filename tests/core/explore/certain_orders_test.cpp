#include "core/explore/certain_orders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/explore/exploring_list.h"
#include "core/explore/posterior_order.h"
#include "core/random/rng_stream.h"
#include "tests/core/explore/slow_orders.h"
#include "tests/support/chi_square.h"

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
  query.by_score.resize(docs);
  std::iota(query.by_score.begin(), query.by_score.end(), 0);
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

TEST(CertainOrdersTest, AnyDifferenceIsCertainWithoutWidth) {
  const std::vector<float> scores = {std::numeric_limits<float>::denorm_min(), 0.0F, -0.0F};
  const std::vector<std::int32_t> by_score = {0, 1, 2};
  const std::vector<double> width_sq(9, 0.0);
  OrderBits orders;
  certain_by_width({0.1, 0.0}, scores, by_score, width_sq, orders);
  EXPECT_TRUE(orders.certain(0, 1));
  EXPECT_TRUE(orders.certain(0, 2));
  EXPECT_FALSE(orders.certain(1, 2));
}

TEST(CertainOrdersTest, NanWidthsMakeNothingCertain) {
  const std::vector<float> scores = {100.0F, 0.0F};
  const std::vector<std::int32_t> by_score = {0, 1};
  for (const double wrong :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    OrderBits orders;
    certain_by_width({0.1, 0.0}, scores, by_score, std::vector<double>(4, wrong), orders);
    EXPECT_FALSE(orders.certain(0, 1)) << wrong;
  }
}

TEST(CertainOrdersTest, DifferencesWithinRoundingAreUncertain) {
  const std::vector<float> scores = {1.0F, 0.75F, 0.5F, 0.0F};
  const std::vector<std::int32_t> by_score = {0, 1, 2, 3};
  const std::vector<double> width_sq(16, 0.0);
  OrderBits orders;
  certain_by_width({0.1, 0.25}, scores, by_score, width_sq, orders);
  EXPECT_FALSE(orders.certain(0, 1));
  EXPECT_FALSE(orders.certain(1, 2));
  EXPECT_TRUE(orders.certain(0, 2));
  EXPECT_TRUE(orders.certain(2, 3));
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
        std::vector<std::int32_t> by_score(docs);
        std::iota(by_score.begin(), by_score.end(), 0);
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

/// The places of [begin, end) that are not taken and that no other such place is certainly before.
std::vector<std::int64_t> slow_available(const OrderTable& table, const std::vector<bool>& taken,
                                         std::size_t begin, std::size_t end) {
  std::vector<std::int64_t> found;
  for (std::size_t place = begin; place < end; ++place) {
    bool free = !taken[place];
    for (std::size_t above = begin; above < place; ++above)
      free = free && (taken[above] || !table[above][place]);
    if (free) found.push_back(static_cast<std::int64_t>(place));
  }
  return found;
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

// Lists that follow a posterior of the scores: draws against their closed form, bounds by hand.

const PhiloxKey kDrawKey = make_key({.seed = 5, .purpose = Purpose::kScores, .fold = 1});
const PhiloxKey kTieKey = make_key({.seed = 5, .purpose = Purpose::kList, .fold = 1});

/// Squared widths of documents with these gradients, under a covariance of identity: ‖g_i − g_j‖².
std::vector<double> widths_of(const std::vector<std::vector<double>>& gradients) {
  std::vector<double> width_sq;
  for (const auto& a : gradients) {
    for (const auto& b : gradients) {
      double sum = 0.0;
      for (std::size_t k = 0; k < a.size(); ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
      width_sq.push_back(sum);
    }
  }
  return width_sq;
}

std::vector<std::vector<double>> random_gradients(std::size_t docs, std::size_t features) {
  RngStream coins(make_key({.seed = 6, .purpose = Purpose::kProbe}), static_cast<std::uint32_t>(features));
  std::vector<std::vector<double>> gradients(docs, std::vector<double>(features));
  for (auto& row : gradients) {
    for (double& value : row) value = 3.0 + coins.normal();  // most of a gradient is common
  }
  return gradients;
}

double normal_below(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

/// Fewer features than documents, as many as documents less one, and more.
class PosteriorDrawTest : public testing::TestWithParam<std::size_t> {};

TEST_P(PosteriorDrawTest, HasTheVariancesAndTheOrdersOfTheClosedForm) {
  constexpr std::size_t kDocs = 6;
  constexpr double kAlpha = 0.4;
  constexpr int kDraws = 40000;
  const std::vector<double> width_sq = widths_of(random_gradients(kDocs, GetParam()));
  const std::vector<float> scores = {0.5F, 0.1F, -0.3F, 0.2F, 0.0F, 0.4F};
  PosteriorOrder order(ListRule::kSample, kDrawKey, kTieKey);
  std::vector<double> sum_sq(kDocs * kDocs, 0.0);
  std::vector<std::int64_t> first_above(kDocs * kDocs, 0);
  for (int draw = 1; draw <= kDraws; ++draw) {
    const auto list = order.find({scores, width_sq, kAlpha}, static_cast<std::uint32_t>(draw));
    std::vector<std::size_t> rank(kDocs);
    for (std::size_t place = 0; place < kDocs; ++place) rank[list[place]] = place;
    for (std::size_t i = 0; i < kDocs; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const double mean = double{scores[i]} - double{scores[j]};
        const double error = order.scores()[i] - order.scores()[j] - mean;
        sum_sq[i * kDocs + j] += error * error;
        first_above[i * kDocs + j] += rank[i] < rank[j] ? 1 : 0;
      }
    }
  }
  // Two χ² bounds and one statistic of two cells for each of 15 pairs: false alarms below 1e-8 in total.
  for (std::size_t i = 0; i < kDocs; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double variance = kAlpha * kAlpha * width_sq[i * kDocs + j];
      const double chi = sum_sq[i * kDocs + j] / variance;
      EXPECT_LT(chi, chi_square_bound(kDraws, kTail)) << i << " " << j;
      EXPECT_GT(chi, chi_square_lower_bound(kDraws, kTail)) << i << " " << j;
      const double above = normal_below((double{scores[i]} - double{scores[j]}) / std::sqrt(variance));
      const std::int64_t count = first_above[i * kDocs + j];
      const std::vector<std::int64_t> counts = {count, kDraws - count};
      EXPECT_TRUE(counts_follow(counts, std::vector{above, 1.0 - above}, kTail)) << i << " " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Features, PosteriorDrawTest, testing::Values(1, 2, 5, 40));

// Gradients 0, 1 and 3 lie 4/3, 1/3 and 5/3 from their mean.
TEST(PosteriorOrderTest, BoundsAreThoseComputedByHand) {
  const std::vector<double> width_sq = widths_of({{0.0}, {1.0}, {3.0}});
  const std::vector<float> scores = {1.0F, 1.25F, 0.5F};
  PosteriorOrder order(ListRule::kUcb, kDrawKey, kTieKey);
  const auto list_at = [&](double alpha) {
    const auto list = order.find({scores, width_sq, alpha}, 1);
    return std::vector<std::int32_t>(list.begin(), list.end());
  };
  EXPECT_EQ(list_at(0.0), (std::vector{1, 0, 2}));
  EXPECT_EQ(list_at(0.1), (std::vector{1, 0, 2}));
  EXPECT_EQ(list_at(1.0), (std::vector{0, 2, 1}));
  const double expected[] = {1.0 + 4.0 / 3.0, 1.25 + 1.0 / 3.0, 0.5 + 5.0 / 3.0};
  for (int doc = 0; doc < 3; ++doc) EXPECT_NEAR(order.scores()[doc], expected[doc], 1e-14);
  EXPECT_EQ(list_at(10.0), (std::vector{2, 0, 1}));
}

TEST(PosteriorOrderTest, EqualScoresComeInAnyOrder) {
  const std::vector<double> width_sq(9, 0.0);
  const std::vector<float> scores(3, 0.25F);
  for (const ListRule rule : {ListRule::kSample, ListRule::kUcb}) {
    PosteriorOrder order(rule, kDrawKey, kTieKey);
    std::vector<std::int64_t> counts(9, 0);  // of the first two documents
    for (std::uint32_t round = 1; round <= 6000; ++round) {
      const auto list = order.find({scores, width_sq, 1.0}, round);
      ++counts[list[0] * 3 + list[1]];
    }
    // False alarms: 1e-6 for each rule.
    const double sixth = 1.0 / 6.0;
    EXPECT_TRUE(
        counts_follow(counts, std::vector{0.0, sixth, sixth, sixth, 0.0, sixth, sixth, sixth, 0.0}));
  }
}

TEST(PosteriorOrderTest, TakesNoDocumentAndOne) {
  for (const ListRule rule : {ListRule::kSample, ListRule::kUcb}) {
    PosteriorOrder order(rule, kDrawKey, kTieKey);
    EXPECT_TRUE(order.find({}, 1).empty());
    const float score = 2.0F;
    const double width_sq = 0.0;
    const auto list = order.find({{&score, 1}, {&width_sq, 1}, 1.0}, 1);
    ASSERT_EQ(list.size(), 1U);
    EXPECT_EQ(order.scores()[0], 2.0);
  }
}

TEST(PosteriorOrderTest, RefusesWhatIsNotFinite) {
  const std::vector<float> scores = {1.0F, 2.0F};
  const std::vector<double> width_sq = {0.0, INFINITY, INFINITY, 0.0};
  for (const ListRule rule : {ListRule::kSample, ListRule::kUcb}) {
    PosteriorOrder order(rule, kDrawKey, kTieKey);
    EXPECT_THROW(order.find({scores, width_sq, 1.0}, 1), NumericError);
  }
}

}  // namespace
}  // namespace olrank
