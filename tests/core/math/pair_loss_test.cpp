#include "core/math/pair_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random/rng_stream.h"
#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

bool is_close(double value, long double exact, long double relative) {
  return std::fabs(static_cast<long double>(value) - exact) <= relative * std::fabs(exact);
}

TEST(PairLossTest, SigmoidAndLossToFullRelativePrecision) {
  for (const double z : {0.0, -0.0, 1e-300, -1e-300, 1e-17, -1e-17, 1e-8, -1e-8, 0.5, -0.5, 1.0, -1.0, 5.0,
                         -5.0, 40.0, -40.0, 700.0, -700.0}) {
    const auto exact_z = static_cast<long double>(z);
    // One exponential of error 6·10⁻¹⁶, a sum and a quotient (or log1p and a sum): below 2·10⁻¹⁵.
    const long double e = std::exp(-std::fabs(exact_z));
    EXPECT_TRUE(is_close(sigmoid(z), (z < 0 ? e : 1.0L) / (1.0L + e), 2e-15L)) << z;
    EXPECT_TRUE(is_close(logistic_loss(z), std::log1p(e) + (z < 0 ? -exact_z : 0.0L), 2e-15L)) << z;
  }
  EXPECT_EQ(sigmoid(0.0), 0.5);
  EXPECT_EQ(sigmoid(-0.0), 0.5);
  EXPECT_EQ(sigmoid(1e-300), 0.5);
  EXPECT_EQ(sigmoid(-1e-300), 0.5);
}

TEST(PairLossTest, SaturatesAtExtremes) {
  EXPECT_EQ(sigmoid(800.0), 1.0);
  EXPECT_EQ(sigmoid(-800.0), 0.0);  // e^−800 is below what portable_exp_nonpositive returns
  EXPECT_EQ(sigmoid(kInfinity), 1.0);
  EXPECT_EQ(sigmoid(-kInfinity), 0.0);
  EXPECT_EQ(logistic_loss(800.0), 0.0);
  EXPECT_EQ(logistic_loss(-800.0), 800.0);
  EXPECT_EQ(logistic_loss(kInfinity), 0.0);
  EXPECT_EQ(logistic_loss(-kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(sigmoid(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(logistic_loss(std::numeric_limits<double>::quiet_NaN())));
}

// Labels outside [0, weight] too, where noise can put them. Terms may cancel, so errors are relative to the
// sum of the absolute terms.
TEST(PairTermTest, MatchesLongDoubleFormula) {
  RngStream draws(make_key({.seed = 41, .purpose = Purpose::kProbe}), 0);
  for (int draw = 0; draw < 10'000; ++draw) {
    const double z = 60.0 * (draws.uniform() - 0.5);
    const double weight = 1.0 + draws.index(9);
    const double labels = 4.0 * draws.normal();
    const auto exact_z = static_cast<long double>(z);
    const long double p = 1.0L / (1.0L + std::exp(-exact_z));
    const long double won = labels * std::log1p(std::exp(-exact_z));
    const long double lost = (static_cast<long double>(weight) - labels) * std::log1p(std::exp(exact_z));
    EXPECT_TRUE(std::fabs(pair_term_loss(z, weight, labels) - (won + lost)) <=
                1e-14L * (std::fabs(won) + std::fabs(lost)))
        << z;
    const double probability = sigmoid(z);
    EXPECT_TRUE(std::fabs(pair_term_slope(probability, weight, labels) - (weight * p - labels)) <=
                1e-14L * (weight + std::fabs(labels)))
        << z;
    EXPECT_TRUE(std::fabs(pair_term_curvature(probability, weight) - weight * p * (1.0L - p)) <=
                1e-14L * weight)
        << z;
  }
}

TEST(PairTermTest, KnowsItsEdges) {
  // Equal scores: ln 2 a pair, whichever document won.
  EXPECT_DOUBLE_EQ(pair_term_loss(0.0, 4.0, 1.0), 4.0 * std::log(2.0));
  EXPECT_EQ(pair_term_slope(sigmoid(0.0), 4.0, 1.0), 1.0);
  EXPECT_EQ(pair_term_curvature(sigmoid(0.0), 4.0), 1.0);
  // An empty term.
  EXPECT_EQ(pair_term_loss(3.0, 0.0, 0.0), 0.0);
  EXPECT_EQ(pair_term_slope(sigmoid(3.0), 0.0, 0.0), 0.0);
  // Far apart, in the observed order and against it.
  EXPECT_EQ(pair_term_loss(1000.0, 2.0, 2.0), 0.0);
  EXPECT_EQ(pair_term_loss(1000.0, 2.0, 0.0), 2000.0);
  EXPECT_EQ(pair_term_slope(sigmoid(1000.0), 2.0, 2.0), 0.0);
  EXPECT_EQ(pair_term_slope(sigmoid(-1000.0), 2.0, 2.0), -2.0);
  EXPECT_EQ(pair_term_curvature(sigmoid(1000.0), 2.0), 0.0);
  EXPECT_TRUE(std::isnan(pair_term_loss(kNan, 1.0, 1.0)));
  EXPECT_TRUE(std::isnan(pair_term_slope(sigmoid(kNan), 1.0, 1.0)));
}

TEST(PriorTest, SlopeIsTheDerivativeOfTheSquaredDistance) {
  EXPECT_EQ(squared_distance(3.0, 1.0), 4.0);
  EXPECT_EQ(squared_distance(-2.0, -2.0), 0.0);
  EXPECT_EQ(prior_slope(0.5, 3.0, 1.0), 2.0);
  EXPECT_EQ(prior_slope(0.0, 3.0, 1.0), 0.0);
  EXPECT_EQ(prior_slope(2.0, 1.0, 1.0), 0.0);
  EXPECT_TRUE(std::isnan(squared_distance(kNan, 1.0)));
}

}  // namespace
}  // namespace olrank
