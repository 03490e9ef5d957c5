#include "core/learning/covariance_checks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/support/special_numbers.h"

namespace olrank {
namespace {

double worst_of(const std::vector<double>& residuals) {
  CovarianceChecks checks;
  checks.probes = static_cast<int>(residuals.size());
  std::size_t next = 0;
  return worst_residual(checks, 3, 7, [&](std::span<const double> probe) {
    double norm_sq = 0.0;
    for (const double number : probe) norm_sq += number * number;
    EXPECT_NEAR(norm_sq, 1.0, 1e-12);
    return residuals[next++];
  });
}

TEST(CovarianceChecksTest, WorstResidualIsTheLargestOrNan) {
  EXPECT_EQ(worst_of({0.1, 0.3, 0.2}), 0.3);
  EXPECT_TRUE(std::isnan(worst_of({0.1, kNan})));
  EXPECT_TRUE(std::isnan(worst_of({kNan, 0.1})));
}

TEST(CovarianceChecksTest, ProbesDependOnThePairsAlone) {
  const auto probe_of = [](std::int64_t pairs) {
    std::vector<double> found;
    worst_residual({}, 4, pairs, [&](std::span<const double> probe) {
      found.insert(found.end(), probe.begin(), probe.end());
      return 0.0;
    });
    return found;
  };
  EXPECT_EQ(probe_of(5), probe_of(5));
  EXPECT_NE(probe_of(5), probe_of(6));
}

TEST(CovarianceChecksTest, ResidualNormIsOfTheWrittenOutProduct) {
  // λ y + s p − v = (2·1 + 0.5·4 − 1, 2·3 + 0.5·2 − 3)
  const std::vector<double> product = {4.0, 2.0};
  const std::vector<double> y = {1.0, 3.0};
  const std::vector<double> v = {1.0, 3.0};
  EXPECT_DOUBLE_EQ(residual_norm(2.0, 0.5, product, y, v), 5.0);
}

/// A covariance whose drift is one number before the rebuild and another one after.
struct Drifting {
  double before;
  double after;
  int rebuilds = 0;

  void check(DriftMonitor& monitor) {
    monitor.check(
        {"dual", 7, 0.5}, [&] { return rebuilds == 0 ? before : after; },
        [&](std::string_view) { ++rebuilds; });
  }
};

TEST(DriftMonitorTest, IsDueAfterSoManyPairs) {
  CovarianceChecks checks;
  checks.every = 10;
  DriftMonitor monitor(checks);
  monitor.add(9);
  EXPECT_FALSE(monitor.is_due());
  monitor.add(1);
  EXPECT_TRUE(monitor.is_due());
  Drifting good{1e-9, 1e-9};
  good.check(monitor);
  EXPECT_FALSE(monitor.is_due());
  checks.every = 0;
  DriftMonitor never(checks);
  never.add(1'000'000);
  EXPECT_FALSE(never.is_due());
}

TEST(DriftMonitorTest, RebuildsOnceBeyondTheBound) {
  DriftMonitor monitor(CovarianceChecks{});
  Drifting good{1e-9, 1e-9};
  good.check(monitor);
  EXPECT_EQ(good.rebuilds, 0);
  Drifting bad{1e-3, 1e-9};
  bad.check(monitor);
  EXPECT_EQ(bad.rebuilds, 1);
  Drifting nan{kNan, 1e-9};
  nan.check(monitor);
  EXPECT_EQ(nan.rebuilds, 1);
}

TEST(DriftMonitorTest, ThrowsWhenTheRebuildDoesNotHelp) {
  DriftMonitor monitor(CovarianceChecks{});
  for (const double after : {0.01, kNan}) {
    Drifting lost{0.5, after};
    EXPECT_THROW(lost.check(monitor), NumericError);
    EXPECT_EQ(lost.rebuilds, 1);
  }
  Drifting lost{0.5, 0.01};
  try {
    lost.check(monitor);
  } catch (const NumericError& error) {
    EXPECT_STREQ(
        error.what(),
        "The dual covariance of 7 pairs has lost its precision at lambda = 0.5: its residual is 0.01, "
        "above "
        "the bound of 0.0001, even after a rebuild. Choose a larger lambda, or form = \"primal\".");
  }
}

}  // namespace
}  // namespace olrank
