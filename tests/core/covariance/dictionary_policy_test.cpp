#include "core/covariance/dictionary_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

TEST(DictionaryPolicyTest, ChoosesAUniformSampleOfAllPairs) {
  const DictionaryPolicy policy(500);
  std::vector<double> priorities;
  for (std::int64_t number = 0; number < 20'000; ++number)
    priorities.push_back(DictionaryPolicy::priority(number));
  const std::vector<std::int64_t> chosen = policy.choose(priorities);
  ASSERT_EQ(chosen.size(), 500U);
  EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
  // χ² of ten equal parts with 9 degrees of freedom: above 50 once in 10⁷ samples.
  std::vector<double> counts(10);
  for (const std::int64_t number : chosen) counts[number / 2000] += 1.0;
  double chi_squared = 0.0;
  for (const double count : counts) chi_squared += (count - 50.0) * (count - 50.0) / 50.0;
  EXPECT_LT(chi_squared, 50.0);
  // A pair chosen of all pairs is chosen of any part of them that has it.
  const std::vector<std::int64_t> of_half =
      policy.choose(std::span<const double>(priorities).first(10'000));
  for (const std::int64_t number : chosen) {
    if (number < 10'000) {
      EXPECT_TRUE(std::binary_search(of_half.begin(), of_half.end(), number));
    }
  }
}

TEST(DictionaryPolicyTest, AdmitsPairsByElimination) {
  // Six pairs of which the third repeats the first and the last is the sum of two others.
  double g[6][8];
  RngStream draws(make_key({.seed = 5, .purpose = Purpose::kProbe}), 1);
  for (auto& row : g) {
    for (double& value : row) value = draws.normal();
  }
  for (std::int64_t k = 0; k < 8; ++k) {
    g[2][k] = g[0][k];
    g[5][k] = g[1][k] + g[3][k];
  }
  std::vector<double> gram(36);
  for (std::int64_t i = 0; i < 6; ++i) {
    for (std::int64_t j = 0; j < 6; ++j) gram[i * 6 + j] = std::inner_product(g[i], g[i] + 8, g[j], 0.0);
  }
  std::vector<double> residual = gram;
  const std::vector<double> magnitudes(6, 20.0);
  const Admission admission = DictionaryPolicy(100).admit(7, magnitudes, residual);
  EXPECT_EQ(admission.entered, (std::vector<std::int64_t>{0, 1, 3, 4}));
  for (std::int64_t i = 0; i < 6; ++i) {
    for (std::int64_t j = 0; j < 6; ++j) {
      double product = 0.0;
      for (std::int64_t e = 0; e < 4; ++e)
        product += admission.coordinates[i * 4 + e] * admission.coordinates[j * 4 + e];
      EXPECT_NEAR(product, gram[i * 6 + j], 1e-12 * 20.0);
      EXPECT_NEAR(residual[i * 6 + j], 0.0, 1e-12 * 20.0);
    }
  }
  residual = gram;
  EXPECT_EQ(DictionaryPolicy(100).admit(98, magnitudes, residual).entered,
            (std::vector<std::int64_t>{0, 1}))
      << "while there is room";
}

TEST(DictionaryRollTest, DropsPairsThatAddNothing) {
  const DictionaryPolicy policy(40);
  DictionaryRoll roll(policy);
  std::int64_t choices = 0;
  for (int round = 0; round < 400; ++round) {
    // Every second pair lies in the span of what the dictionary has.
    const std::vector<double> magnitudes(2, 1.0);
    std::vector<double> residual = {0.5, 0.0, 0.0, 0.0};
    const std::vector<double> before = residual;
    const Admission admission = policy.admit(std::ssize(roll.members()), magnitudes, residual);
    roll.add(before, magnitudes, admission);
    if (roll.upkeep() == DictionaryUpkeep::kChoose) {
      ++choices;
      ASSERT_EQ(roll.chosen().size(), 40U);
      Admission all;
      for (std::int64_t pair = 0; pair < 40; ++pair) all.entered.push_back(pair);
      roll.choose_again(roll.chosen(), [&](std::span<const std::int64_t>) { return all; });
    }
    roll.trim(roll.leaving());
    EXPECT_LE(std::ssize(roll.priorities()), policy.window() + policy.slack());
  }
  EXPECT_EQ(roll.pairs(), 800);
  EXPECT_GE(choices, 10);
  for (const std::int64_t member : roll.members()) EXPECT_EQ(member % 2, 0);
}

}  // namespace
}  // namespace olrank
