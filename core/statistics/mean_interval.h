#pragma once

#include <cstddef>
#include <vector>

namespace olrank {

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

/// Without values, NaN.
double mean_of(const std::vector<double>& values);
/// The sample's standard deviation; NaN with fewer than two values.
double deviation_of(const std::vector<double>& values);

}  // namespace olrank
