#include "core/covariance/covariance_checks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "core/covariance/dictionary_policy.h"
#include "core/error.h"
#include "core/random/rng_stream.h"
#include "tests/support/chi_square.h"
#include "tests/support/expected_warnings.h"
#include "tests/support/message_of.h"
#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

TEST(CovarianceChecksTest, WidthErrorOfAKnownError) {
  // A = diag(4, 1), v = (2, 3): w² = 1 + 9. A wrong y = A⁻¹v + (0, 0.01) gives 10.03 and A's form of it.
  const double v_y = 2.0 * 0.5 + 3.0 * 3.01;
  const double y_a_y = 4.0 * 0.25 + 3.01 * 3.01;
  EXPECT_NEAR(width_error(v_y, v_y, y_a_y), 0.03 / 10.0, 2e-5);
  EXPECT_NEAR(width_error(10.5, v_y, y_a_y), 0.05, 2e-5);
  EXPECT_EQ(width_error(10.0, 10.0, 10.0), 0.0);
  EXPECT_EQ(width_error(1e-17, 0.0, 0.0), 0.0) << "equal documents";
}

TEST(CovarianceChecksTest, WidthErrorIsInfiniteOrNanWithoutACorrectDigit) {
  EXPECT_EQ(width_error(1.0, 1.0, 3.0), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(width_error(1.0, kNan, 1.0)));
  EXPECT_TRUE(std::isnan(width_error(kNan, 1.0, 1.0)));
}

TEST(CovarianceChecksTest, QuadraticFormAndUnitVectorAreThoseWrittenOut) {
  // λ ‖(1, 2)‖² + s (3² + 4²)
  EXPECT_DOUBLE_EQ(quadratic_form(2.0, 0.5, std::vector<double>{1.0, 2.0}, std::vector<double>{3.0, 4.0}),
                   10.0 + 12.5);
  EXPECT_EQ(unit_at_largest(std::vector<double>{1.0, -3.0, 2.0}), (std::vector<double>{0.0, 1.0, 0.0}));
}

/// The drift of 7 pairs with these errors.
double drift_of(const std::vector<double>& along_vectors, const std::vector<double>& of_pairs) {
  CovarianceChecks checks;
  checks.vectors = static_cast<int>(along_vectors.size());
  checks.pairs = static_cast<int>(of_pairs.size());
  std::size_t vector = 0;
  std::size_t pair = 0;
  return measure_drift(
      checks, 3, 7,
      [&](std::span<const double> probe) {
        EXPECT_NEAR(std::inner_product(probe.begin(), probe.end(), probe.begin(), 0.0), 1.0, 1e-12);
        return along_vectors[vector++];
      },
      [&](std::int64_t number) {
        EXPECT_TRUE(number >= 0 && number < 7);
        return of_pairs[pair++];
      });
}

TEST(CovarianceChecksTest, DriftIsTheWorstVectorOrTheMedianPair) {
  EXPECT_EQ(drift_of({0.1, 0.3, 0.2}, {}), 0.3);
  EXPECT_EQ(drift_of({0.1}, {0.5, 0.2, 0.01, 0.3, 0.9}), 0.3);
  EXPECT_EQ(drift_of({0.1}, {0.5, 0.05, 0.01, 0.03, 0.9}), 0.1);
  EXPECT_TRUE(std::isnan(drift_of({0.1, kNan}, {0.5})));
  EXPECT_TRUE(std::isnan(drift_of({kNan, 0.1}, {0.5})));
  EXPECT_EQ(drift_of({0.1}, {kNan, 0.2, 0.3}), 0.3);
  EXPECT_FALSE(drift_of({0.1}, {kNan, kNan, 0.3}) <= 1.0);
}

TEST(CovarianceChecksTest, ProbesDependOnThePairsAlone) {
  const auto probes_of = [](std::int64_t pairs) {
    std::vector<double> found;
    measure_drift(
        {}, 4, pairs,
        [&](std::span<const double> probe) {
          found.insert(found.end(), probe.begin(), probe.end());
          return 0.0;
        },
        [&](std::int64_t pair) {
          found.push_back(static_cast<double>(pair));
          return 0.0;
        });
    return found;
  };
  EXPECT_EQ(probes_of(500), probes_of(500));
  EXPECT_NE(probes_of(500), probes_of(501));
  EXPECT_EQ(probes_of(0).size(), 8U) << "no pairs yet";
}

TEST(CovarianceChecksTest, RefusesGradientsBesideWhichNoDigitIsLeft) {
  require_information(0.5, 0.5e26);
  for (const double information : {0.6e26, kNan, std::numeric_limits<double>::infinity()})
    EXPECT_THROW(require_information(0.5, information), NumericError);
}

/// A covariance whose drift is one number before the rebuild and another one after.
struct Drifting {
  double before;
  double after;
  int rebuilds = 0;

  void check(DriftMonitor& monitor, std::int64_t observed = 7) {
    monitor.check(
        {"dual", observed, 0.5}, [&] { return rebuilds == 0 ? before : after; },
        [&](std::string_view) { ++rebuilds; });
  }
};

TEST(DriftMonitorTest, IsDueAfterSoManyPairs) {
  CovarianceChecks checks;
  checks.every = 10;
  DriftMonitor monitor(checks);
  monitor.add(9, 9);
  EXPECT_FALSE(monitor.is_due());
  EXPECT_FALSE(monitor.will_be_due(0, 9));
  EXPECT_TRUE(monitor.will_be_due(1, 10));
  monitor.add(1, 10);
  EXPECT_TRUE(monitor.is_due());
  Drifting good{1e-9, 1e-9};
  good.check(monitor);
  EXPECT_FALSE(monitor.is_due());
  monitor.add(9, 19);
  EXPECT_FALSE(monitor.is_due());
  monitor.add(25, 44);
  EXPECT_TRUE(monitor.is_due());
  checks.every = 0;
  DriftMonitor never(checks);
  never.add(1'000'000, 1'000'000);
  EXPECT_FALSE(never.is_due());
}

// The cost of a measurement grows with the observed pairs, so all together cost in proportion to them. The
// count is saved, and the checks that follow depend on it alone.
TEST(DriftMonitorTest, IsDueAfterAnEighthToAFourthMorePairsAndThoroughWhenTheyHaveDoubled) {
  DriftMonitor monitor(CovarianceChecks{});
  DriftMonitor loaded(CovarianceChecks{});
  Drifting good{1e-9, 1e-9};
  std::int64_t last = 0;
  std::vector<std::int64_t> thorough;
  for (std::int64_t observed = 1; observed <= 20'000; ++observed) {
    loaded.set_unchecked(loaded.unchecked());
    for (DriftMonitor* one : {&monitor, &loaded}) one->add(1, observed);
    ASSERT_EQ(loaded.is_due(), monitor.is_due());
    ASSERT_EQ(loaded.unchecked(), monitor.unchecked());
    EXPECT_LE(monitor.is_thorough(), monitor.is_due());
    if (!monitor.is_due()) continue;
    if (monitor.is_thorough()) thorough.push_back(observed);
    for (DriftMonitor* one : {&monitor, &loaded}) good.check(*one, observed);
    EXPECT_FALSE(monitor.is_thorough());
    const std::int64_t distance = observed - last;
    if (observed <= 512) {
      EXPECT_EQ(distance, 64) << observed;
    } else {
      EXPECT_GE(16 * distance, observed) << observed;
      EXPECT_LE(3 * distance, observed) << observed;
    }
    last = observed;
  }
  EXPECT_GT(last, 15'000);
  EXPECT_EQ(thorough, (std::vector<std::int64_t>{256, 512, 1024, 2048, 4096, 8192, 16'384}));
}

TEST(DriftMonitorTest, WarnsOnceAndRebuildsBeyondTheBound) {
  const ExpectedWarnings warnings;
  DriftMonitor monitor(CovarianceChecks{});
  Drifting good{1e-9, 1e-9};
  good.check(monitor);
  EXPECT_EQ(good.rebuilds, 0);
  EXPECT_TRUE(warnings.messages().empty());
  Drifting bad{1e-3, 1e-9};
  bad.check(monitor);
  EXPECT_EQ(bad.rebuilds, 1);
  Drifting nan{kNan, 1e-9};
  nan.check(monitor);
  EXPECT_EQ(nan.rebuilds, 1);
  ASSERT_EQ(warnings.messages().size(), 1U);
  EXPECT_EQ(
      warnings.messages().front(),
      "The dual covariance of 7 pairs has lost digits: squared widths have a relative error of 0.001. "
      "Normalise the features, or choose a larger lambda than 0.5.");
}

TEST(DriftMonitorTest, ThrowsWhenTheRebuildDoesNotHelp) {
  const ExpectedWarnings warnings;
  DriftMonitor monitor(CovarianceChecks{});
  for (const auto& [after, what] :
       {std::pair<double, const char*>{0.01, "a relative error of 0.01"}, {kNan, "no correct digit"}}) {
    Drifting lost{0.5, after};
    EXPECT_EQ(message_of<NumericError>([&] { lost.check(monitor); }),
              fmt::format("The dual covariance of 7 pairs has lost its precision at lambda = 0.5: squared "
                          "widths have {}, even after a rebuild. Normalise the features, or choose a "
                          "larger lambda.",
                          what));
    EXPECT_EQ(lost.rebuilds, 1);
  }
}

TEST(DictionaryPolicyTest, ChoosesAUniformSampleOfAllPairs) {
  const DictionaryPolicy policy(500);
  std::vector<double> priorities;
  for (std::int64_t number = 0; number < 20'000; ++number)
    priorities.push_back(DictionaryPolicy::priority(number));
  const std::vector<std::int64_t> chosen = policy.choose(priorities);
  ASSERT_EQ(chosen.size(), 500U);
  EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
  // χ² of ten equal parts with 9 degrees of freedom: above 50 once in 10⁷ samples.
  std::vector<std::int64_t> counts(10);
  for (const std::int64_t number : chosen) ++counts[number / 2000];
  EXPECT_LT(chi_square(counts, std::vector<double>(10, 0.1)).statistic, 50.0);
  // A pair chosen of all pairs is chosen of any part of them that has it.
  const std::vector<std::int64_t> of_half =
      policy.choose(std::span<const double>(priorities).first(10'000));
  const auto in_half = std::span(chosen.begin(), std::ranges::lower_bound(chosen, 10'000));
  EXPECT_TRUE(std::ranges::includes(of_half, in_half));
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
