#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/math/any_cpu.h"
#include "core/math/dcg.h"
#include "core/math/normal.h"
#include "core/math/optimizer_step.h"
#include "core/math/pair_loss.h"
#include "core/math/portable_exp.h"
#include "core/random/rng_stream.h"
#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

TEST(PairWidthTest, TheProductOfAPairWithItselfIsItsSquaredWidth) {
  EXPECT_EQ(pair_product(3.0, 0.5, 0.5, 2.0), pair_width(3.0, 2.0, 0.5).squared);
  EXPECT_EQ(pair_product(1.0, 1.0, 1.0, 1.0), 0.0);
  EXPECT_EQ(pair_product(1.0, 2.0, 4.0, 8.0), 3.0);
}

// A sampler that accepts without a hyperbolic tangent must decide as the formula that it stands for.
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

long double cosine(int times, double x) {
  return std::cos(std::numbers::pi_v<long double> * times * static_cast<long double>(x));
}

TEST(CosineTest, KeepsItsPromisedError) {
  for (int step = 0; step <= 100'000; ++step) {
    const double x = step / 100'000.0;
    const double first = cosine_of_half_turns(x);
    ASSERT_LE(std::fabs(first - cosine(1, x)), 3e-16L) << x;
    const HigherCosines higher = higher_cosines(first);
    for (int term = 0; term < HigherCosines::kTerms; ++term)
      ASSERT_LE(std::fabs(higher.of[term] - cosine(term + 2, x)), 5e-15L) << x << ' ' << term;
  }
  EXPECT_EQ(cosine_of_half_turns(0.5), 0.0);
  EXPECT_EQ(cosine_of_half_turns(0.0), -cosine_of_half_turns(1.0));
}

TEST(PortableLogTest, IsWithinTwoUnitsOfTheLastPlaceOfLibm) {
  for (int exponent = -300; exponent <= 300; exponent += 7) {
    for (double mantissa = 1.0; mantissa < 2.0; mantissa += 0.0137) {
      const double x = std::ldexp(mantissa, exponent);
      const double expected = std::log(x);
      // Near 1 the logarithm's own size is the scale; each of a dozen roundings is at most half a unit.
      const double tolerance = 4.5e-16 * std::abs(expected) + 1e-18;
      EXPECT_TRUE(std::abs(portable_log(x) - expected) <= tolerance) << x;
    }
  }
  EXPECT_EQ(portable_log(1.0), 0.0);
}

// Φ by the complementary error function of libm, which is accurate to the last places in both tails.
double normal_distribution(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

TEST(NormalQuantileTest, InvertsTheDistributionFunctionAndIsOdd) {
  for (double exponent = -300.0; exponent < -0.301; exponent += 0.37) {
    const double u = std::pow(10.0, exponent);
    const double x = normal_quantile(u);
    // dΦ/Φ = x φ/Φ dx/x grows like x² in the tail: relative 1e-15 in x is up to 1.4e-12 in u here.
    const double tolerance = u * (4e-15 + 1.5e-15 * x * x);
    EXPECT_TRUE(std::abs(normal_distribution(x) - u) <= tolerance) << u;
  }
  // u and 1 − u are both exact for multiples of 2^-20.
  for (int i = 1; i < 1 << 19; i += 997) {
    const double u = std::ldexp(i, -20);
    EXPECT_EQ(normal_quantile(u), -normal_quantile(1.0 - u));
  }
}

bool close(double value, long double exact, long double relative) {
  return std::fabs(static_cast<long double>(value) - exact) <= relative * std::fabs(exact);
}

TEST(PortableExpTest, KeepsItsPromisedError) {
  RngStream coins(make_key({.seed = 35, .purpose = Purpose::kProbe}), 0);
  double worst = 0.0;
  for (int draw = 0; draw < 400'000; ++draw) {
    // Every scale from 10⁻³⁰⁰ to 708, and every place between whole multiples of ln 2.
    const double x = draw % 4 == 0   ? -std::pow(10.0, -300.0 * coins.uniform())
                     : draw % 4 == 1 ? -708.0 * coins.uniform()
                     : draw % 4 == 2
                         ? -40.0 * coins.uniform()
                         : -std::log(2.0) * (0.5 + coins.index(1000)) * (1.0 + 1e-13 * coins.normal());
    const long double exact = std::exp(static_cast<long double>(x));
    const double value = portable_exp_nonpositive(x);
    const auto relative = static_cast<double>(std::fabs(value / exact - 1.0L));
    ASSERT_TRUE(relative <= 3e-16 * (1.0 + std::fabs(x) / 700.0)) << x << ": " << relative;
    ASSERT_TRUE(close(value, std::exp(x), 1e-15L)) << x;
    worst = std::max(worst, relative);
  }
  EXPECT_GT(worst, 1e-17);  // the comparison looks at more than equal numbers
}

TEST(PortableExpTest, NeverRisesAndKnowsItsEdges) {
  double last = portable_exp_nonpositive(0.0);
  for (int step = 1; step <= 200'000; ++step) {
    const double value = portable_exp_nonpositive(-708.5 * step / 200'000.0);
    ASSERT_LE(value, last) << step;
    last = value;
  }
  EXPECT_EQ(last, 0.0);
  EXPECT_EQ(portable_exp_nonpositive(0.0), 1.0);
  EXPECT_EQ(portable_exp_nonpositive(-0.0), 1.0);
  EXPECT_EQ(portable_exp_nonpositive(-std::numeric_limits<double>::denorm_min()), 1.0);
  EXPECT_GT(portable_exp_nonpositive(-708.0), 0.0);
  EXPECT_TRUE(close(portable_exp_nonpositive(-708.0), std::exp(-708.0L), 1e-15L));
  EXPECT_EQ(portable_exp_nonpositive(std::nextafter(-708.0, -kInfinity)), 0.0);
  EXPECT_EQ(portable_exp_nonpositive(-1e308), 0.0);
  EXPECT_EQ(portable_exp_nonpositive(-kInfinity), 0.0);
  EXPECT_TRUE(std::isnan(portable_exp_nonpositive(kNan)));
}

TEST(AnyCpuTest, OwnFunctionsKeepTheValuesOfTheLibrarys) {
  const std::vector<double> xs = {-HUGE_VAL, -800.0, -700.5, -1.5,  -1e-9,    -0.0, 0.0,
                                  1e-9,      1.5,    700.5,  800.0, HUGE_VAL, NAN};
  const std::vector<double> positive = {0.0, 5e-324, 1e-9, 0.25, 1.0, 3.0, 1e300, HUGE_VAL, NAN};
  own_functions = false;
  EXPECT_EQ(exp_of(1.5), std::exp(1.5));
  EXPECT_EQ(log_of(3.0), std::log(3.0));
  EXPECT_EQ(log1p_of(0.3), std::log1p(0.3));
  EXPECT_EQ(logistic_loss_of(-0.3), logistic_loss(-0.3));
  EXPECT_EQ(power_of(0.9, 331), std::pow(0.9, 331.0));
  own_functions = true;
  const auto expect_near = [](double own, double expected) {
    if (std::isfinite(expected) && expected != 0.0)
      EXPECT_TRUE(std::abs(own - expected) <= 1e-15 * std::abs(expected)) << own << " for " << expected;
    else
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(own) : own == expected) << own << " for " << expected;
  };
  for (const double x : xs) expect_near(exp_of(x), x < -708.0 ? 0.0 : x > 708.0 ? HUGE_VAL : std::exp(x));
  for (const double x : positive) expect_near(log_of(x), std::log(x));
  for (const double x : positive) expect_near(log1p_of(x), std::log1p(x));
  for (const double x : xs) expect_near(logistic_loss_of(x), logistic_loss(x));
  for (const std::int64_t n : {0, 1, 2, 7, 331})
    EXPECT_NEAR(power_of(0.9, n) / std::pow(0.9, n), 1.0, 1e-13);
  own_functions = false;
}

// The vectors that Random123 publishes for philox4x32 with 10 rounds (kat_vectors).
TEST(PhiloxTest, GivesThePublishedAnswers) {
  constexpr struct {
    PhiloxCounter counter;
    PhiloxKey key;
    PhiloxCounter expected;
  } kKnown[] = {{{{0, 0, 0, 0}}, {{0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
                {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
                 {{0xffffffff, 0xffffffff}},
                 {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
                {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
                 {{0xa4093822, 0x299f31d0}},
                 {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}}};
  for (const auto& known : kKnown) {
    const PhiloxCounter result = philox4x32_10(known.counter, known.key);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(result.word[i], known.expected.word[i]);
  }
}

TEST(LabelNoiseTest, MatchesLongDoubleFormula) {
  RngStream draws(make_key({.seed = 45, .purpose = Purpose::kProbe}), 0);
  for (int draw = 0; draw < 10'000; ++draw) {
    const double labels = draws.index(50);
    const double weight = labels + draws.index(50) + 1.0;
    const double deviation = draws.uniform();
    const double normal = draws.normal();
    const long double noise = deviation * std::sqrt(static_cast<long double>(weight)) * normal;
    const double noisy = noisy_labels(labels, weight, deviation, normal);
    EXPECT_TRUE(std::fabs(noisy - (labels + noise)) <= 4e-16L * (labels + std::fabs(noise))) << draw;
    // The repetitions' shares add up to the term's noise; the difference loses the digits of `labels`.
    const double share = noise_per_pair(noisy, labels, weight);
    EXPECT_TRUE(std::fabs(share * weight - noise) <= 1e-15L * (labels + std::fabs(noise))) << draw;
  }
}

TEST(LabelNoiseTest, KnowsItsEdges) {
  EXPECT_EQ(noisy_labels(3.0, 4.0, 0.0, 1.7), 3.0);
  EXPECT_EQ(noisy_labels(3.0, 0.0, 1.0, 1.7), 3.0);
  EXPECT_EQ(noisy_labels(1.0, 4.0, 0.5, -3.0), -2.0);
  EXPECT_EQ(noisy_pair_labels(1.0, 1, 0.0), 1.0);
  EXPECT_EQ(noisy_pair_labels(1.0, 0, -0.25), -0.25);
  EXPECT_EQ(noisy_pair_labels(0.5, 1, 0.25), 0.75);
  EXPECT_EQ(noise_per_pair(5.0, 3.0, 4.0), 0.5);
  EXPECT_TRUE(std::isnan(noisy_labels(1.0, 1.0, 1.0, kNan)));
}

TEST(PairLossTest, SigmoidAndLossToFullRelativePrecision) {
  for (const double z : {0.0, -0.0, 1e-300, -1e-300, 1e-17, -1e-17, 1e-8, -1e-8, 0.5, -0.5, 1.0, -1.0, 5.0,
                         -5.0, 40.0, -40.0, 700.0, -700.0}) {
    const auto exact_z = static_cast<long double>(z);
    // One exponential of error 6·10⁻¹⁶, a sum and a quotient (or log1p and a sum): below 2·10⁻¹⁵.
    const long double e = std::exp(-std::fabs(exact_z));
    EXPECT_TRUE(close(sigmoid(z), (z < 0 ? e : 1.0L) / (1.0L + e), 2e-15L)) << z;
    EXPECT_TRUE(close(logistic_loss(z), std::log1p(e) + (z < 0 ? -exact_z : 0.0L), 2e-15L)) << z;
  }
  EXPECT_EQ(sigmoid(0.0), 0.5);
  EXPECT_EQ(sigmoid(-0.0), 0.5);
  EXPECT_EQ(sigmoid(1e-300), 0.5);
  EXPECT_EQ(sigmoid(-1e-300), 0.5);
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
  EXPECT_TRUE(std::isnan(ndcg_change(1.0, kNan, 0.5, 2.0)));
  EXPECT_EQ(dcg_gain(1, Gain::kExponential), kClickGain);
}

TEST(StepSizeTest, IsTheRateOverTheLargestCurvatureAndDecaysWithEachTraining) {
  // m = 10, λ = 3: the loss has ½·30 ‖θ − θ₀‖², whose curvature is 30.
  const double weight = prior_weight_of(10.0, 3.0);
  EXPECT_EQ(weight, 15.0);
  EXPECT_EQ(prior_curvature(weight), 30.0);
  EXPECT_EQ(stable_step(0.5, 20.0, prior_curvature(weight)), 0.01);
  EXPECT_EQ(decayed_rate(0.8, 0.5, 0), 0.8);
  EXPECT_EQ(decayed_rate(0.8, 0.5, 2), 0.2);
}

TEST(StepSizeTest, TrainingsFailByARiseOrAnExplosion) {
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
    for (const double ended : {3e7, -3e7, kInfinity, -kInfinity, std::nan("")}) {
      EXPECT_TRUE(training_failed(10.0, ended, 20.0, false, repeats)) << ended;
      EXPECT_TRUE(training_failed(10.0, ended, 20.0, true, repeats)) << ended;
    }
    EXPECT_TRUE(training_failed(kInfinity, 1.0, 20.0, false, repeats));
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

TEST(LargestCurvatureRuleTest, SettlesWhenTheQuotientStopsGrowing) {
  EXPECT_FALSE(has_settled(0, 0.0, 0.0, 1e-3));  // the first quotient has nothing to compare with
  EXPECT_FALSE(has_settled(1, 1.0, 0.0, 1e-3));
  EXPECT_FALSE(has_settled(1, 1.01, 1.0, 1e-3));
  EXPECT_TRUE(has_settled(1, 1.0005, 1.0, 1e-3));
  EXPECT_TRUE(has_settled(7, 1.0, 1.0, 0.0));
  EXPECT_TRUE(has_settled(7, 0.99, 1.0, 0.0));
  EXPECT_TRUE(has_settled(1, 0.0, 0.0, 1e-3));  // all gradients are zero
  EXPECT_FALSE(has_settled(3, kNan, 1.0, 1e-3));
}

}  // namespace
}  // namespace olrank
