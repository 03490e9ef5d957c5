#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "core/covariance/dictionary_policy.h"
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

/// Pairs one by one, pair n along direction n modulo `directions`.
class RollDriver {
 public:
  RollDriver(std::int64_t budget, std::int64_t directions)
      : policy_(budget), roll_(policy_), directions_(directions) {}

  DictionaryUpkeep observe() {
    const std::int64_t direction = roll_.pairs() % directions_;
    std::vector<double> residual{is_known(direction) ? 0.0 : 1.0};
    const std::vector<double> magnitudes{1.0};
    const std::vector<double> before = residual;
    const Admission admission = policy_.admit(std::ssize(roll_.members()), magnitudes, residual);
    roll_.add(before, magnitudes, admission);
    return roll_.upkeep();
  }
  /// Does what upkeep() has asked for.
  void keep_up(DictionaryUpkeep upkeep) {
    if (upkeep == DictionaryUpkeep::kChoose) {
      std::vector<std::int64_t> taken;
      roll_.choose_again(roll_.chosen(), [&](std::span<const std::int64_t> block) {
        Admission admission;
        for (std::int64_t at = 0; at < std::ssize(block); ++at) {
          const std::int64_t direction = block[at] % directions_;
          if (std::find(taken.begin(), taken.end(), direction) != taken.end()) continue;
          taken.push_back(direction);
          admission.entered.push_back(at);
        }
        return admission;
      });
    }
    if (const std::int64_t leaving = roll_.leaving(); leaving > 0) roll_.trim(leaving);
    if (upkeep != DictionaryUpkeep::kNothing) roll_.set_projected();
  }
  DictionaryRoll& roll() { return roll_; }

 private:
  bool is_known(std::int64_t direction) const {
    return std::any_of(roll_.members().begin(), roll_.members().end(),
                       [&](std::int64_t number) { return number % directions_ == direction; });
  }

  DictionaryPolicy policy_;
  DictionaryRoll roll_;
  std::int64_t directions_;
};

/// The candidates with the highest priorities, computed from everything that the roll knows.
std::vector<std::int64_t> slow_choice(const DictionaryRoll& roll) {
  std::vector<std::int64_t> numbers;
  for (const std::int64_t number : roll.members()) {
    if (number < roll.first_of_window()) numbers.push_back(number);
  }
  for (std::int64_t at = 0; at < std::ssize(roll.priorities()); ++at) {
    if (roll.priorities()[at] >= 0.0) numbers.push_back(roll.first_of_window() + at);
  }
  std::stable_sort(numbers.begin(), numbers.end(), [](std::int64_t a, std::int64_t b) {
    return DictionaryPolicy::priority(a) > DictionaryPolicy::priority(b);
  });
  numbers.resize(std::min(std::ssize(numbers), roll.policy().budget()));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// The roll leaves out choices that cannot be due; they are made here after every pair.
TEST(DictionaryRollTest, ChoosesWheneverEnoughPairsWait) {
  for (const std::int64_t budget : {1, 7, 60}) {
    RollDriver driver(budget, 10'007);
    int choices = 0;
    for (std::int64_t pair = 0; pair < 2000; ++pair) {
      const DictionaryUpkeep upkeep = driver.observe();
      const DictionaryRoll& roll = driver.roll();
      if (std::ssize(roll.members()) == budget) {
        const std::vector<std::int64_t> chosen = slow_choice(roll);
        std::int64_t waiting = 0;
        bool leaves = false;
        for (const std::int64_t number : chosen) {
          if (std::binary_search(roll.members().begin(), roll.members().end(), number)) continue;
          ++waiting;
          leaves |= number < roll.first_of_window() + roll.leaving();
        }
        ASSERT_EQ(upkeep == DictionaryUpkeep::kChoose, roll.policy().replaces(waiting) || leaves) << pair;
        if (upkeep == DictionaryUpkeep::kChoose) {
          ++choices;
          ASSERT_TRUE(std::equal(chosen.begin(), chosen.end(), roll.chosen().begin(), roll.chosen().end()));
        }
      }
      driver.keep_up(upkeep);
      ASSERT_LE(std::ssize(roll.members()), budget);
      ASSERT_LE(std::ssize(roll.priorities()), roll.policy().window() + roll.policy().slack());
    }
    EXPECT_GT(choices, 5) << budget;
  }
}

// However long the history: pairs that are chosen enter before they leave the window, so that at any time
// the dictionary has the highest priorities of all pairs except the newest ones.
TEST(DictionaryRollTest, IsASampleOfAllPairsAfterManyWindows) {
  constexpr std::int64_t kBudget = 40;
  RollDriver driver(kBudget, 100'003);
  for (std::int64_t pair = 0; pair < 200 * kBudget; ++pair) driver.keep_up(driver.observe());
  const DictionaryRoll& roll = driver.roll();
  std::vector<double> priorities;
  for (std::int64_t number = 0; number < roll.first_of_window(); ++number)
    priorities.push_back(DictionaryPolicy::priority(number));
  std::nth_element(priorities.begin(), priorities.begin() + kBudget, priorities.end(), std::greater<>());
  const auto found = std::count_if(roll.members().begin(), roll.members().end(), [&](std::int64_t number) {
    return DictionaryPolicy::priority(number) > priorities[kBudget];
  });
  EXPECT_EQ(found, std::ssize(roll.members()));
}

TEST(DictionaryRollTest, TakesARepeatedPairOnce) {
  RollDriver driver(50, 8);
  for (std::int64_t pair = 0; pair < 100; ++pair) driver.keep_up(driver.observe());
  EXPECT_EQ(std::ssize(driver.roll().members()), 8);
  EXPECT_EQ(driver.roll().pairs(), 100);
  EXPECT_LT(driver.roll().priorities().back(), 0.0);
}

TEST(DictionaryRollTest, RefusesNumbersThatCannotBelongTogether) {
  DictionaryRoll roll{DictionaryPolicy(2)};
  EXPECT_FALSE(roll.restore(9, {1, 2, 3}, {0.5}, 0)) << "more than the budget";
  EXPECT_FALSE(roll.restore(1, {0}, {0.5, 0.5}, 0)) << "a window of more than all pairs";
  EXPECT_FALSE(roll.restore(9, {1, 2}, {0.5}, 3)) << "projected on more than the budget";
  EXPECT_FALSE(roll.restore(9, {2, 1}, {0.5}, 0)) << "not ascending";
  EXPECT_FALSE(roll.restore(9, {1, 1}, {0.5}, 0)) << "twice the same";
  EXPECT_FALSE(roll.restore(9, {1, 9}, {0.5}, 0)) << "not observed";
  EXPECT_TRUE(roll.restore(9, {1, 2}, {0.5}, 2));
  EXPECT_EQ(roll.first_of_window(), 8);
}

}  // namespace
}  // namespace olrank
