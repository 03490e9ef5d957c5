#pragma once

#include <cstddef>
#include <vector>

namespace olrank {

/// One figure of several trials; the values of one fold's seeds stand together.
using FoldedValues = std::vector<std::vector<double>>;

/// The level of every interval and test of a report.
inline constexpr double kConfidence = 0.95;

/// A mean and its t interval. Trials of one fold share their data and so are not independent: with several
/// folds the independent values are the fold means, and the interval is about other folds too; with one
/// fold they are its seeds, and the interval is about that fold alone.
struct MeanInterval {
  double mean = 0.0;        // of the fold means; NaN without values
  double half_width = 0.0;  // NaN with fewer than two independent values
  std::size_t values = 0;   // all of them
  std::size_t units = 0;    // the independent ones
  bool over_folds = false;
};

MeanInterval mean_interval(const FoldedValues& values, double confidence = kConfidence);

/// The independent values: fold means, or the values of the only fold. Folds without values do not count.
std::vector<double> independent_values(const FoldedValues& values);

/// Without values, NaN.
double mean_of(const std::vector<double>& values);
/// The sample's standard deviation; NaN with fewer than two values.
double deviation_of(const std::vector<double>& values);

}  // namespace olrank
