#pragma once

#include <cstddef>
#include <span>

#include "core/math/philox.h"
#include "core/statistics/mean_interval.h"

namespace olrank {

/// Differences between two rankers with the same queries and random draws, per trial.
struct PairedTest {
  MeanInterval difference;  // over trials; the tests take its independent values
  double t = 0.0;
  double t_p = 0.0;     // two-sided; NaN with fewer than two independent differences
  double flip_p = 0.0;  // two-sided, by sign flips; NaN likewise
  bool flips_exact = true;
};

/// Student's test alone; the fields of sign flips are NaN.
PairedTest paired_test(const FoldedValues& differences);

/// Both tests treat the independent values of `differences` as the sample: fold means, or one fold's seeds.
PairedTest paired_test(const FoldedValues& differences, PhiloxKey key);

/// Student's paired test, two-sided. Equal differences have p = 1 when they are 0, else 0.
double paired_t_p(std::span<const double> differences);

/// The two-sided sign-flip randomisation test of mean 0: the share of sign patterns whose sum is at least
/// as far from 0 as the observed one. All patterns for up to 16 differences, otherwise 9,999 random ones
/// and the observed one.
struct SignFlipTest {
  double p = 0.0;
  bool exact = true;
};
SignFlipTest sign_flip_test(std::span<const double> differences, PhiloxKey key);

}  // namespace olrank
