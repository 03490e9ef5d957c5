#pragma once

#include <cstddef>
#include <vector>

namespace olrank {

/// One figure of several trials, grouped by fold: one value per seed.
using FoldedValues = std::vector<std::vector<double>>;

/// The confidence level of all intervals and tests in a report.
inline constexpr double kConfidence = 0.95;

/// A mean and its t interval. Trials of one fold share their data, so they are not independent: with
/// several folds, the independent values are the fold means, and the interval generalises to other folds;
/// with one fold they are its seeds, and the interval holds for that fold only.
struct MeanInterval {
  double mean = 0.0;        // of the fold means; NaN without values
  double half_width = 0.0;  // NaN with fewer than two independent values
  std::size_t values = 0;   // all of them
  std::size_t units = 0;    // the independent ones
  bool over_folds = false;
};

MeanInterval mean_interval(const FoldedValues& values, double confidence = kConfidence);

/// The independent values: fold means, or the values of the only fold. Folds without values are ignored.
std::vector<double> independent_values(const FoldedValues& values);

/// Without values, NaN.
double mean_of(const std::vector<double>& values);
/// The sample's standard deviation; NaN with fewer than two values.
double deviation_of(const std::vector<double>& values);

}  // namespace olrank
