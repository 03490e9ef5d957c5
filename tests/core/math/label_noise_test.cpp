#include "core/math/normal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

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
