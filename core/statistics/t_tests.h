#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/random/rng_stream.h"

namespace olrank {

/// I_x(a, b), for a, b > 0 and x in [0, 1]; NaN elsewhere.
double regularised_incomplete_beta(double a, double b, double x);

/// P(|T| ≥ |t|) for Student's t with `freedom` degrees of freedom.
double student_t_two_sided(double t, double freedom);

/// The t that T stays below with `probability`, in (0, 1).
double student_t_quantile(double probability, double freedom);

/// One figure of several trials, grouped by fold: one value per seed.
using FoldedValues = std::vector<std::vector<double>>;

/// The confidence level of all intervals and tests in a report.
inline constexpr double kConfidence = 0.95;

/// A mean over trials and its t interval (docs/METRICS.md). Trials of one fold share their data, so the
/// interval is rather too narrow for other folds; tests take the independent values instead.
struct MeanInterval {
  double mean = 0.0;        // of all values; NaN without values
  double deviation = 0.0;   // the sample's standard deviation; NaN with fewer than two values
  double half_width = 0.0;  // of the t interval over all values; NaN with fewer than two
  std::size_t values = 0;   // all of them
  std::size_t units = 0;    // the independent ones
  bool over_folds = false;  // they are from several folds
};

MeanInterval mean_interval(const FoldedValues& values, double confidence = kConfidence);

/// The values that tests take as independent: fold means, or the values of the only fold. Folds without
/// values are ignored.
std::vector<double> independent_values(const FoldedValues& values);

/// Without values it is NaN.
double mean_of(const std::vector<double>& values);
/// The sample's standard deviation; NaN with fewer than two values.
double deviation_of(const std::vector<double>& values);

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

/// The probability with which a planned test finds a true difference of the planned size.
inline constexpr double kPower = 0.8;

/// Sample sizes beyond this are not planned.
inline constexpr std::size_t kLargestSample = 10000;

/// The fewest paired differences with which a two-sided t test at `level` finds a true mean `difference`
/// with probability `power`, if single differences scatter by `deviation`. Nothing beyond kLargestSample
/// or if an input is not finite or the difference is 0. Uses n ≥ (t_{1−level/2} + t_power)² (deviation /
/// difference)² with n − 1 degrees of freedom, which agrees with the noncentral t distribution to within
/// one or two units.
std::optional<std::size_t> sample_size(double difference, double deviation, double level,
                                       double power = kPower);

/// The inverse: the smallest true difference that a test with so many units finds with probability `power`.
/// NaN with fewer than two units.
double detectable_difference(std::size_t units, double deviation, double level, double power = kPower);

/// An upper limit, at 80 %, of the true deviation behind one that was estimated with so many degrees of
/// freedom. Plans from a few pilot values use it, because their own deviation is often much too small.
/// Browne, "On the use of a pilot sample for sample size determination", Statistics in Medicine 1995.
double planning_deviation(double deviation, double freedom);

/// Holm-adjusted p-values: rejecting those below a level bounds the family-wise error rate by
/// that level under any dependence. Holm, "A simple sequentially rejective multiple test
/// procedure", Scandinavian Journal of Statistics 1979. NaN stays NaN and does not count as a
/// test.
std::vector<double> holm_adjusted(std::span<const double> p_values);

/// The coefficients of y ≈ c_0 + Σ_k c_k x_k by least squares, c_0 first. `columns` holds the values of
/// each x_k. All are NaN where the columns do not decide them: too few points, or columns that depend
/// linearly.
std::vector<double> fit_least_squares(std::span<const double> y,
                                      const std::vector<std::vector<double>>& columns);

/// The mean height of a learning curve: its trapezoidal area divided by the rounds between the first and
/// last point. Comparing areas is more robust than comparing single points. NaN without points; the value
/// of a single point. `rounds` must ascend.
double curve_area(std::span<const double> rounds, std::span<const double> values);

}  // namespace olrank
