#include "core/math/pair_width.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random/rng_stream.h"
#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

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
