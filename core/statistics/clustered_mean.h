#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/io/state_archive.h"
#include "core/statistics/interval.h"

namespace olrank {

/// The mean of values that come in clusters, such as the lists of groups of users: values of one cluster
/// may depend on each other. Adding a value takes constant time.
class ClusteredMean {
 public:
  explicit ClusteredMean(std::int64_t clusters) : values_in_(clusters), sum_of_(clusters) {}

  void add(std::int64_t cluster, double value);
  void clear();

  std::int64_t values() const { return values_; }
  std::int64_t clusters() const { return clusters_; }  // with values
  double sum() const { return sum_; }
  double mean() const { return values_ > 0 ? sum_ / static_cast<double>(values_) : 0.0; }
  /// Of the mean, by the deviations of whole clusters from it.
  double variance() const;

  void save(StateWriter& state, std::string_view name) const;
  void load(StateReader& state, std::string_view name);

 private:
  std::vector<double> values_in_;  // of each cluster
  std::vector<double> sum_of_;
  std::int64_t values_ = 0;
  std::int64_t clusters_ = 0;
  double sum_ = 0.0;
  // Σ over clusters of sum², sum · values and values².
  double sum_sum_ = 0.0;
  double sum_values_ = 0.0;
  double values_values_ = 0.0;
};

/// An interval for the expectation of `value`, the mean of observations so far, that holds at all times at
/// once: one may look after each observation and stop at will. It is the asymptotic confidence sequence of
/// Robbins' normal mixture (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit
/// theory and asymptotic confidence sequences", Annals of Statistics 2024): as the central limit theorem
/// does, it needs some observations to hold. `variance` is that of the value, `time` their number, or what
/// grows as 1/variance does.
Interval anytime_interval(double value, double variance, double time, double confidence);

/// How much more the values of one mean are than those of another, at all times at once.
Interval anytime_difference(const ClusteredMean& one, const ClusteredMean& other, double confidence);

}  // namespace olrank
