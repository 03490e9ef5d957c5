#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/math/dcg.h"
#include "core/math/optimizer_step.h"
#include "core/math/pair_loss.h"
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

TEST(ListLossMathTest, LogarithmKeepsItsPrecision) {
  RngStream coins(make_key({.seed = 36, .purpose = Purpose::kProbe}), 0);
  for (int draw = 0; draw < 200'000; ++draw) {
    const double x = draw % 2 == 0 ? coins.uniform() : std::pow(10.0, -300.0 * coins.uniform());
    const long double exact = std::log1p(static_cast<long double>(x));
    // A handful of roundings of half an ulp, 1.1e-16.
    ASSERT_TRUE(std::fabs(log1p_of_unit(x) - exact) <= 6e-16L * exact) << x;
  }
  EXPECT_EQ(log1p_of_unit(0.0), 0.0);
  EXPECT_TRUE(std::fabs(log1p_of_unit(1.0) - std::log(2.0)) <= 2e-16);
  EXPECT_TRUE(std::fabs(log1p_of_unit(std::sqrt(2.0) - 1.0) - 0.5 * std::log(2.0)) <= 2e-16);
}

TEST(ListLossMathTest, MisorderLossIsTheLogisticLoss) {
  for (double lead = -50.0; lead <= 50.0; lead += 0.37) {
    EXPECT_TRUE(std::fabs(misorder_loss(lead) - logistic_loss(-lead)) <= 1e-15 * logistic_loss(-lead))
        << lead;
  }
  EXPECT_EQ(misorder_loss(1e4), 1e4);
  EXPECT_EQ(misorder_loss(-1e4), 0.0);
}

TEST(ListLossMathTest, HingeHasItsKinkWhereThePairIsWonByOne) {
  EXPECT_EQ(hinge_loss(-1.5), 0.0);
  EXPECT_EQ(hinge_loss(-1.0), 0.0);
  EXPECT_EQ(hinge_slope(-1.0), 0.0);
  EXPECT_EQ(hinge_loss(0.5), 1.5);
  EXPECT_EQ(hinge_slope(-0.5), 1.0);
}

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

TEST(NdcgChangeTest, KnowsItsEdges) {
  EXPECT_EQ(ndcg_change(0.0, 1.0, 0.5, 2.0), 0.0);
  EXPECT_EQ(ndcg_change(3.0, 0.5, 0.5, 2.0), 0.0);
  EXPECT_EQ(ndcg_change(kClickGain, 1.0, 0.5, 2.0), 0.25);
  EXPECT_EQ(ndcg_change(kClickGain, 0.5, 1.0, 2.0), 0.25);
  EXPECT_TRUE(std::isnan(ndcg_change(1.0, std::numeric_limits<double>::quiet_NaN(), 0.5, 2.0)));
  EXPECT_EQ(dcg_gain(1, Gain::kExponential), kClickGain);
}

TEST(StepSizeTest, IsTheRateOverTheLargestCurvature) {
  // m = 10, λ = 3: the loss has ½·30 ‖θ − θ₀‖², whose curvature is 30.
  const double weight = prior_weight_of(10.0, 3.0);
  EXPECT_EQ(weight, 15.0);
  EXPECT_EQ(prior_curvature(weight), 30.0);
  EXPECT_EQ(stable_step(0.5, 20.0, prior_curvature(weight)), 0.01);
}

TEST(StepSizeTest, RateDecaysWithEachTraining) {
  EXPECT_EQ(decayed_rate(0.8, 0.5, 0), 0.8);
  EXPECT_EQ(decayed_rate(0.8, 0.5, 2), 0.2);
}

TEST(StepSizeTest, TrainingsFailByARiseOrAnExplosion) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(training_failed(10.0, 10.0, 20.0, true, 0));
  EXPECT_TRUE(training_failed(10.0, 10.001, 20.0, true, 0));
  // A repeat may raise the loss, but by no more than itself and 1 a pair.
  EXPECT_FALSE(training_failed(10.0, 40.0, 20.0, true, 1));
  EXPECT_TRUE(training_failed(10.0, 40.1, 20.0, true, 1));
  EXPECT_FALSE(training_failed(-10.0, 20.0, 20.0, true, 2));
  EXPECT_TRUE(training_failed(-10.0, 20.1, 20.0, true, 2));
  // LambdaRank's may rise, but not without bound; a loss with noise may fall below 0, but not without
  // bound.
  EXPECT_FALSE(training_failed(10.0, 1e7, 20.0, false, 0));
  for (const int repeats : {0, 1, 40}) {
    for (const double ended : {3e7, -3e7, infinite, -infinite, std::nan("")}) {
      EXPECT_TRUE(training_failed(10.0, ended, 20.0, false, repeats)) << ended;
      EXPECT_TRUE(training_failed(10.0, ended, 20.0, true, repeats)) << ended;
    }
    EXPECT_TRUE(training_failed(infinite, 1.0, 20.0, false, repeats));
    EXPECT_TRUE(training_failed(std::nan(""), 1.0, 20.0, true, repeats));
  }
  // A step that is short enough never fails, even where one list dominates the loss.
  EXPECT_FALSE(training_failed(1e12, 1e12, 20.0, true, 0));
  EXPECT_FALSE(training_failed(1e12, 1.001e12, 20.0, false, 5));
  EXPECT_TRUE(can_repeat(10.0, kMostRepeats - 1));
  EXPECT_FALSE(can_repeat(10.0, kMostRepeats));
  EXPECT_FALSE(can_repeat(std::nan(""), 0)) << "no step helps parameters that give no scores";
  EXPECT_EQ(repeated_rate(0.8, 3), 0.1);
}

TEST(StepSizeTest, CurvatureIsStaleAfterATenthMorePairs) {
  EXPECT_TRUE(curvature_is_stale(1, 0));
  EXPECT_FALSE(curvature_is_stale(109, 100));
  EXPECT_TRUE(curvature_is_stale(110, 100));
}

TEST(OptimizerElementTest, NanStaysVisible) {
  EXPECT_TRUE(std::isnan(gradient_descent_element(0.1, kNan, 1.0)));
  EXPECT_TRUE(std::isnan(decayed_element(0.1, 0.0, kNan, 1.0)));
  EXPECT_TRUE(std::isnan(nesterov_element(0.1, kNan, 1.0, 1.0).theta));
  EXPECT_TRUE(std::isnan(adam_element(0.1, step_rates(1, 0.0), kNan, {0.0, 0.0, 1.0}).position));
}

TEST(OptimizerElementTest, CorrectionsApproachOne) {
  const StepRates first = step_rates(1, 0.25);
  EXPECT_NEAR(first.first_correction, 0.1, 1e-15);
  EXPECT_NEAR(first.second_correction, 0.001, 1e-15);
  EXPECT_EQ(first.decay, 0.25);
  const StepRates late = step_rates(1'000'000, 0.0);
  EXPECT_EQ(late.first_correction, 1.0);
  EXPECT_EQ(late.second_correction, 1.0);
}

TEST(LargestCurvatureRuleTest, SettlesWhenTheQuotientStopsGrowing) {
  EXPECT_FALSE(has_settled(0, 0.0, 0.0, 1e-3));  // the first quotient has nothing to compare with
  EXPECT_FALSE(has_settled(1, 1.0, 0.0, 1e-3));
  EXPECT_FALSE(has_settled(1, 1.01, 1.0, 1e-3));
  EXPECT_TRUE(has_settled(1, 1.0005, 1.0, 1e-3));
  EXPECT_TRUE(has_settled(7, 1.0, 1.0, 0.0));
  EXPECT_TRUE(has_settled(7, 0.99, 1.0, 0.0));
  EXPECT_TRUE(has_settled(1, 0.0, 0.0, 1e-3));  // all gradients are zero
  EXPECT_FALSE(has_settled(3, std::numeric_limits<double>::quiet_NaN(), 1.0, 1e-3));
}

TEST(LargestCurvatureRuleTest, IsAQuarterOfTheQuotient) {
  EXPECT_EQ(curvature_of(0.0), 0.0);
  EXPECT_EQ(curvature_of(6.0), 1.5);
}

}  // namespace
}  // namespace olrank
