#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace olrank {

/// The value below which a share of a sample lies, by linear interpolation between neighbours. The sample
/// must be sorted and not empty.
inline double sorted_quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// A figure and the interval in which it lies.
struct Interval {
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;
};

/// The mean of values that come in clusters, such as the lists of groups of users: values of one cluster
/// may depend on each other. Adding a value takes constant time.
class ClusteredMean {
 public:
  /// All that it knows, to be kept.
  struct Sums {
    std::vector<double> values_in;  // each cluster
    std::vector<double> sum_of;     // each cluster
    double values = 0.0;
    double clusters = 0.0;  // with values
    double sum = 0.0;
    // Σ over clusters of sum², sum · values and values².
    double sum_sum = 0.0;
    double sum_values = 0.0;
    double values_values = 0.0;
  };

  explicit ClusteredMean(std::int64_t clusters)
      : sums_{std::vector<double>(clusters), std::vector<double>(clusters)} {}
  explicit ClusteredMean(Sums sums) : sums_(std::move(sums)) {}

  void add(std::int64_t cluster, double value);
  void clear() { *this = ClusteredMean(std::ssize(sums_.values_in)); }

  const Sums& sums() const { return sums_; }
  std::int64_t values() const { return static_cast<std::int64_t>(sums_.values); }
  std::int64_t clusters() const { return static_cast<std::int64_t>(sums_.clusters); }
  double mean() const { return sums_.values > 0.0 ? sums_.sum / sums_.values : 0.0; }
  /// The mean has this variance by the deviations of whole clusters from it.
  double variance() const;

 private:
  Sums sums_;
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
