#include "core/covariance/covariance_checks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
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

TEST(CovarianceChecksTest, QuadraticFormIsOfTheWrittenOutMatrix) {
  // λ ‖(1, 2)‖² + s (3² + 4²)
  EXPECT_DOUBLE_EQ(quadratic_form(2.0, 0.5, std::vector<double>{1.0, 2.0}, std::vector<double>{3.0, 4.0}),
                   10.0 + 12.5);
}

TEST(CovarianceChecksTest, UnitVectorAtTheLargestEntry) {
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
        double norm_sq = 0.0;
        for (const double number : probe) norm_sq += number * number;
        EXPECT_NEAR(norm_sq, 1.0, 1e-12);
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

// What a measurement costs grows with the observed pairs, so all together cost in proportion to them.
TEST(DriftMonitorTest, IsDueAfterAnEighthToAFourthMorePairs) {
  DriftMonitor monitor(CovarianceChecks{});
  Drifting good{1e-9, 1e-9};
  std::int64_t last = 0;
  for (std::int64_t observed = 1; observed <= 20'000; ++observed) {
    monitor.add(1, observed);
    if (!monitor.is_due()) continue;
    good.check(monitor, observed);
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
}

// What is counted is saved, and the checks that follow depend on it alone.
TEST(DriftMonitorTest, IsThoroughWhenThePairsHaveDoubled) {
  DriftMonitor monitor(CovarianceChecks{});
  Drifting good{1e-9, 1e-9};
  std::vector<std::int64_t> thorough;
  for (std::int64_t observed = 1; observed <= 20'000; ++observed) {
    monitor.add(1, observed);
    EXPECT_LE(monitor.is_thorough(), monitor.is_due());
    if (monitor.is_thorough()) thorough.push_back(observed);
    if (monitor.is_due()) good.check(monitor, observed);
    EXPECT_FALSE(monitor.is_thorough());
  }
  EXPECT_EQ(thorough, (std::vector<std::int64_t>{256, 512, 1024, 2048, 4096, 8192, 16'384}));
}

TEST(DriftMonitorTest, GoesOnWhereItWasSaved) {
  DriftMonitor straight(CovarianceChecks{});
  DriftMonitor loaded(CovarianceChecks{});
  Drifting good{1e-9, 1e-9};
  std::int64_t observed = 0;
  int checked = 0;
  for (std::int64_t round = 0; round < 400; ++round) {
    loaded.set_unchecked(loaded.unchecked());
    observed += 1 + round % 7;
    for (DriftMonitor* monitor : {&straight, &loaded}) monitor->add(1 + round % 7, observed);
    ASSERT_EQ(loaded.is_due(), straight.is_due());
    if (straight.is_due()) {
      for (DriftMonitor* monitor : {&straight, &loaded}) good.check(*monitor, observed);
      ++checked;
    }
    ASSERT_EQ(loaded.unchecked(), straight.unchecked());
  }
  EXPECT_GT(checked, 10);
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
  for (const double after : {0.01, kNan}) {
    Drifting lost{0.5, after};
    EXPECT_THROW(lost.check(monitor), NumericError);
    EXPECT_EQ(lost.rebuilds, 1);
  }
  Drifting lost{0.5, 0.01};
  EXPECT_EQ(message_of<NumericError>([&] { lost.check(monitor); }),
            "The dual covariance of 7 pairs has lost its precision at lambda = 0.5: squared widths have a "
            "relative error of 0.01, even after a rebuild. Normalise the features, or choose a larger "
            "lambda.");
}

}  // namespace
}  // namespace olrank
