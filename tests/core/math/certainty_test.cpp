#include "core/math/pair_width.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random/rng_stream.h"
#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

/// σ(z) − α w − ½, as the paper writes it with ε = 0.
long double slow_margin(const CertaintyRule& rule, double difference, double width_sq) {
  const long double sigma = 1.0L / (1.0L + std::exp(-static_cast<long double>(difference)));
  return sigma - rule.alpha * std::sqrt(static_cast<long double>(width_sq)) - 0.5L;
}

TEST(CertaintyTest, MatchesLongDoubleFormula) {
  RngStream draws(make_key({.seed = 42, .purpose = Purpose::kProbe}), 0);
  int certain = 0;
  int compared = 0;
  for (int draw = 0; draw < 100'000; ++draw) {
    const CertaintyRule rule{2.0 * draws.uniform(), 1e-9};
    const double difference = std::pow(10.0, 4.0 * draws.uniform() - 3.0) * (draw % 5 == 0 ? -1.0 : 1.0);
    const double width_sq = draw % 7 == 0 ? 0.0 : std::pow(10.0, 4.0 * draws.uniform() - 4.0);
    const long double margin = slow_margin(rule, difference, width_sq);
    if (std::fabs(margin) <= 1e-15L) continue;  // closer to the threshold than rounding
    ++compared;
    const bool expected = difference > rule.least_difference && margin > 0.0L;
    ASSERT_EQ(is_certain(rule, difference, width_sq), expected) << difference << " " << width_sq;
    certain += expected ? 1 : 0;
  }
  EXPECT_GT(compared, 99'000);
  EXPECT_GT(certain, 10'000);
  EXPECT_LT(certain, 90'000);
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
