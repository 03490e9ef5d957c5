#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/math/pair_width.h"
#include "core/random/rng_stream.h"
#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

TEST(PairWidthTest, ReportsRoundingAndLostDigits) {
  const PairWidth equal = pair_width(2.0, 2.0, 2.0);
  EXPECT_EQ(equal.squared, 0.0);
  EXPECT_FALSE(equal.negative);
  EXPECT_FALSE(equal.lost);
  const PairWidth rounded = pair_width(1.0, 1.0, 1.0 + 1e-12);
  EXPECT_EQ(rounded.squared, 0.0);
  EXPECT_TRUE(rounded.negative);
  EXPECT_FALSE(rounded.lost);
  const PairWidth lost = pair_width(1.0, 1.0, 1.1);
  EXPECT_EQ(lost.squared, 0.0);
  EXPECT_TRUE(lost.negative);
  EXPECT_TRUE(lost.lost);
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    const PairWidth width = pair_width(1.0, bad, 0.5);
    EXPECT_EQ(width.squared, 0.0);
    EXPECT_TRUE(width.lost);
  }
  EXPECT_TRUE(pair_width(kInfinity, kInfinity, kInfinity).lost);
  EXPECT_EQ(pair_width(1e300, 1e300, -1e300).squared, 4e300);
}

TEST(PairWidthTest, AVarianceIsLostWhenFarBelowZero) {
  EXPECT_FALSE(is_lost_variance(0.0, 0.0));
  EXPECT_FALSE(is_lost_variance(-1e-7, 1.0));
  EXPECT_FALSE(is_lost_variance(-1e-6, 1.0));
  EXPECT_TRUE(is_lost_variance(-1e-5, 1.0));
  EXPECT_TRUE(is_lost_variance(-1e-300, 0.0));
  EXPECT_TRUE(is_lost_variance(kNan, 1.0));
}

TEST(PairWidthTest, TheProductOfAPairWithItselfIsItsSquaredWidth) {
  EXPECT_EQ(pair_product(3.0, 0.5, 0.5, 2.0), pair_width(3.0, 2.0, 0.5).squared);
  EXPECT_EQ(pair_product(1.0, 1.0, 1.0, 1.0), 0.0);
  EXPECT_EQ(pair_product(1.0, 2.0, 4.0, 8.0), 3.0);
}

// What accepts without a hyperbolic tangent must not decide otherwise than the formula that it stands for.
// The early rejection of uncertain orders, within rounding of the threshold, comes before either.
TEST(CertaintyTest, AcceptsNothingEarlyThatTheFormulaRejects) {
  RngStream draws(make_key({.seed = 43, .purpose = Purpose::kProbe}), 0);
  int certain = 0;
  constexpr int kDraws = 300'000;
  for (int draw = 0; draw < kDraws; ++draw) {
    const double difference = std::pow(10.0, 18.0 * draws.uniform() - 14.0);
    const double above = 0.5 * std::tanh(0.5 * difference);
    const double alpha = 0.01 + draws.uniform();
    const double share = 1.0 + (draws.uniform() - 0.5) * std::pow(10.0, -16.0 * draws.uniform());
    const double width = above * share / alpha;
    const double width_sq = width * width;
    const double term_sq = alpha * alpha * width_sq;
    const double most = 0.25 * difference;
    const bool expected = most * most > term_sq && above > std::sqrt(term_sq);
    ASSERT_EQ(is_certain({alpha, 0.0}, difference, width_sq), expected)
        << difference << ", width " << width;
    certain += expected ? 1 : 0;
  }
  EXPECT_GT(certain, kDraws / 4);
  EXPECT_LT(certain, 3 * kDraws / 4);
}

TEST(CertaintyTest, DecidesNothingWithinRounding) {
  const CertaintyRule rule{0.0, 1e-6};
  EXPECT_FALSE(is_certain(rule, 0.0, 0.0));  // a tie
  EXPECT_FALSE(is_certain(rule, 1e-6, 0.0));
  EXPECT_TRUE(is_certain(rule, 1.1e-6, 0.0));
  EXPECT_FALSE(is_certain(rule, -5.0, 0.0));
  EXPECT_FALSE(votes_for_first(1.0F, 1.0F, 0.0));
  EXPECT_TRUE(votes_for_first(1.0F, 0.5F, 0.25));
  EXPECT_FALSE(votes_for_first(1.0F, 0.5F, 0.5));
  EXPECT_FALSE(votes_for_first(0.5F, 1.0F, 0.0));
  EXPECT_EQ(rounding_of_scores(0.0F), 0.0);
  EXPECT_EQ(rounding_of_scores(4.0F), 4e-6);
}

TEST(CertaintyTest, HandlesExtremes) {
  const CertaintyRule rule{1.0, 0.0};
  EXPECT_TRUE(is_certain(rule, 1e300, 0.2));
  EXPECT_FALSE(is_certain(rule, 1e300, 0.26));  // α w above ½
  EXPECT_TRUE(is_certain(rule, kInfinity, 0.2));
  EXPECT_FALSE(is_certain(rule, 1.0, kInfinity));
  EXPECT_FALSE(is_certain(rule, kNan, 0.1));
  EXPECT_FALSE(is_certain(rule, 1.0, kNan));
  EXPECT_FALSE(is_certain({kNan, 0.0}, 1.0, 0.1));
  EXPECT_FALSE(votes_for_first(std::nanf(""), 0.0F, 0.0));
}

}  // namespace
}  // namespace olrank
