#pragma once

#include <cstddef>
#include <span>

#include "core/math/philox.h"
#include "core/statistics/mean_interval.h"

namespace olrank {

/// Differences between two rankers that met the same queries and coins, trial by trial.
struct PairedTest {
  MeanInterval difference;
  double t = 0.0;
  double t_p = 0.0;     // two-sided; NaN with fewer than two independent differences
  double flip_p = 0.0;  // two-sided, by flipping signs; NaN likewise
  bool flips_exact = true;
};

/// Both tests treat the independent values of `differences` as the sample: fold means, or one fold's seeds.
PairedTest paired_test(const FoldedValues& differences, PhiloxKey key);

/// Student's paired test, two-sided. Equal differences have p = 1 when they are 0, else 0.
double paired_t_p(std::span<const double> differences);

/// The sign-flip randomisation test of mean 0, two-sided: the share of sign patterns whose sum is as far
/// from 0 as the one seen. All patterns up to 16 differences, beyond that 9,999 drawn ones and the one
/// seen.
struct SignFlipTest {
  double p = 0.0;
  bool exact = true;
};
SignFlipTest sign_flip_test(std::span<const double> differences, PhiloxKey key);

}  // namespace olrank
