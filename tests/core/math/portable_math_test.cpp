#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "core/math/normal.h"
#include "core/math/philox.h"
#include "core/math/portable_exp.h"
#include "core/random/rng_stream.h"
#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

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
}

TEST(CosineTest, IsExactAtTheMiddleAndBalancedAtTheEnds) {
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

TEST(NormalQuantileTest, InvertsTheDistributionFunction) {
  for (double exponent = -300.0; exponent < -0.301; exponent += 0.37) {
    const double u = std::pow(10.0, exponent);
    const double x = normal_quantile(u);
    // dΦ/Φ = x φ/Φ dx/x grows like x² in the tail: relative 1e-15 in x is up to 1.4e-12 in u here.
    const double tolerance = u * (4e-15 + 1.5e-15 * x * x);
    EXPECT_TRUE(std::abs(normal_distribution(x) - u) <= tolerance) << u;
  }
}

TEST(NormalQuantileTest, GivesTabulatedPercentagePoints) {
  EXPECT_EQ(normal_quantile(0.5), 0.0);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 2e-15);
  EXPECT_NEAR(normal_quantile(0.75), 0.6744897501960817, 1e-15);
  EXPECT_NEAR(normal_quantile(0.001), -3.090232306167813, 4e-15);
  EXPECT_NEAR(normal_quantile(1e-20), -9.262340089798408, 1e-14);
}

TEST(NormalQuantileTest, IsOdd) {
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

TEST(PortableExpTest, Edges) {
  EXPECT_EQ(portable_exp_nonpositive(0.0), 1.0);
  EXPECT_EQ(portable_exp_nonpositive(-0.0), 1.0);
  EXPECT_EQ(portable_exp_nonpositive(-std::numeric_limits<double>::denorm_min()), 1.0);
  EXPECT_GT(portable_exp_nonpositive(-708.0), 0.0);
  EXPECT_TRUE(close(portable_exp_nonpositive(-708.0), std::exp(-708.0L), 1e-15L));
  EXPECT_EQ(portable_exp_nonpositive(std::nextafter(-708.0, -kInfinity)), 0.0);
  EXPECT_EQ(portable_exp_nonpositive(-1e308), 0.0);
  EXPECT_EQ(portable_exp_nonpositive(-kInfinity), 0.0);
  EXPECT_TRUE(std::isnan(portable_exp_nonpositive(std::numeric_limits<double>::quiet_NaN())));
}

TEST(PortableExpTest, NeverRises) {
  double last = portable_exp_nonpositive(0.0);
  for (int step = 1; step <= 200'000; ++step) {
    const double value = portable_exp_nonpositive(-708.5 * step / 200'000.0);
    ASSERT_LE(value, last) << step;
    last = value;
  }
  EXPECT_EQ(last, 0.0);
}

struct KnownAnswer {
  PhiloxCounter counter;
  PhiloxKey key;
  PhiloxCounter expected;
};

// The vectors that Random123 publishes for philox4x32 with 10 rounds (kat_vectors).
constexpr KnownAnswer kKnownAnswers[] = {
    {{{0, 0, 0, 0}}, {{0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
    {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
     {{0xffffffff, 0xffffffff}},
     {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
    {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
     {{0xa4093822, 0x299f31d0}},
     {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
};

TEST(PhiloxTest, GivesThePublishedAnswers) {
  for (const KnownAnswer& known : kKnownAnswers) {
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
    // What the repetitions carry adds up to the term's noise; the difference loses the digits of `labels`.
    const double share = noise_per_pair(noisy, labels, weight);
    EXPECT_TRUE(std::fabs(share * weight - noise) <= 1e-15L * (labels + std::fabs(noise))) << draw;
  }
}

// N(0, weight ν²): χ² over 20,000 draws, six standard deviations of its mean.
TEST(LabelNoiseTest, HasTheVarianceOfItsRepetitions) {
  RngStream draws(make_key({.seed = 46, .purpose = Purpose::kProbe}), 0);
  constexpr int kDraws = 20'000;
  double sum = 0.0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const double noise = noisy_labels(2.0, 9.0, 0.5, draws.normal()) - 2.0;
    sum += noise * noise;
  }
  EXPECT_NEAR(sum / kDraws, 9.0 * 0.25, 6.0 * 9.0 * 0.25 * std::sqrt(2.0 / kDraws));
}

TEST(LabelNoiseTest, KnowsItsEdges) {
  EXPECT_EQ(noisy_labels(3.0, 4.0, 0.0, 1.7), 3.0);
  EXPECT_EQ(noisy_labels(3.0, 0.0, 1.0, 1.7), 3.0);
  EXPECT_EQ(noisy_labels(1.0, 4.0, 0.5, -3.0), -2.0);
  EXPECT_EQ(noisy_pair_labels(1.0, 1, 0.0), 1.0);
  EXPECT_EQ(noisy_pair_labels(1.0, 0, -0.25), -0.25);
  EXPECT_EQ(noisy_pair_labels(0.5, 1, 0.25), 0.75);
  EXPECT_EQ(noise_per_pair(5.0, 3.0, 4.0), 0.5);
  EXPECT_TRUE(std::isnan(noisy_labels(1.0, 1.0, 1.0, std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace olrank
