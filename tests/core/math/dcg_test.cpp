#include "core/math/dcg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

TEST(DcgTest, MatchesLongDoubleFormulas) {
  for (int grade = 0; grade <= kHighestGrade; ++grade) {
    const long double exponential = std::exp2(static_cast<long double>(grade)) - 1.0L;
    EXPECT_EQ(dcg_gain(grade, Gain::kExponential), static_cast<double>(exponential));
    EXPECT_EQ(dcg_gain(grade, Gain::kLinear), grade);
    EXPECT_EQ(err_satisfaction(grade, kHighestGrade),
              static_cast<double>(exponential / std::exp2(static_cast<long double>(kHighestGrade))));
  }
  for (const std::int64_t rank : {0, 1, 2, 9, 1000, 1'000'000}) {
    const auto place = static_cast<long double>(rank);
    EXPECT_NEAR(dcg_discount(rank, Discount::kLog2), static_cast<double>(1.0L / std::log2(place + 2.0L)),
                1e-15);
    EXPECT_NEAR(dcg_discount(rank, Discount::kLetor),
                rank < 2 ? 1.0 : static_cast<double>(1.0L / std::log2(place + 1.0L)), 1e-15);
  }
}

/// NDCG of grades in the order shown.
long double slow_ndcg(const std::vector<int>& grades, long double ideal) {
  long double sum = 0.0L;
  for (std::size_t rank = 0; rank < grades.size(); ++rank) {
    sum += (std::exp2(static_cast<long double>(grades[rank])) - 1.0L) /
           std::log2(static_cast<long double>(rank) + 2.0L);
  }
  return sum / ideal;
}

// The change is that of the whole metric when two documents swap places.
TEST(NdcgChangeTest, MatchesSwappedLists) {
  RngStream draws(make_key({.seed = 47, .purpose = Purpose::kProbe}), 0);
  std::vector<int> grades;
  for (int doc = 0; doc < 12; ++doc) grades.push_back(static_cast<int>(draws.index(5)));
  constexpr double kIdeal = 37.5;
  for (std::size_t a = 0; a < grades.size(); ++a) {
    for (std::size_t b = 0; b < grades.size(); ++b) {
      std::vector<int> swapped = grades;
      std::swap(swapped[a], swapped[b]);
      const double gain_difference =
          std::fabs(dcg_gain(grades[a], Gain::kExponential) - dcg_gain(grades[b], Gain::kExponential));
      const double change =
          ndcg_change(gain_difference, dcg_discount(static_cast<std::int64_t>(a), Discount::kLog2),
                      dcg_discount(static_cast<std::int64_t>(b), Discount::kLog2), kIdeal);
      const long double exact = std::fabs(slow_ndcg(swapped, kIdeal) - slow_ndcg(grades, kIdeal));
      EXPECT_NEAR(change, static_cast<double>(exact), 1e-15) << a << " " << b;
    }
  }
}

TEST(NdcgChangeTest, KnowsItsEdges) {
  EXPECT_EQ(ndcg_change(0.0, 1.0, 0.5, 2.0), 0.0);
  EXPECT_EQ(ndcg_change(3.0, 0.5, 0.5, 2.0), 0.0);
  EXPECT_EQ(ndcg_change(kClickGain, 1.0, 0.5, 2.0), 0.25);
  EXPECT_EQ(ndcg_change(kClickGain, 0.5, 1.0, 2.0), 0.25);
  EXPECT_TRUE(std::isnan(ndcg_change(1.0, std::numeric_limits<double>::quiet_NaN(), 0.5, 2.0)));
  EXPECT_EQ(dcg_gain(1, Gain::kExponential), kClickGain);
}

}  // namespace
}  // namespace olrank
