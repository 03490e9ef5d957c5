#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/statistics/t_tests.h"
#include "report/report.h"

namespace olrank {

/// Which of two values is better; a measure without a better direction is not tested.
enum class Better { kLarger, kSmaller, kNeither };

struct FinalMeasure {
  std::string slug;
  std::string title;
  int digits = 4;
  Better better = Better::kLarger;
  std::function<double(const TrialResults&)> value;
};

/// The value of a measure that a finished trial ends with, for console, page and files: at the last
/// evaluation; shares of counted orders over the whole trial (docs/METRICS.md), the unfairness without its
/// sign.
double final_value(const TrialResults& trial, Measure measure);
/// Its mean over trials that have a value.
MeanInterval final_mean(const TrialList& trials, Measure measure);

/// Every measure that tables show, for lists of `cutoff` documents.
std::vector<FinalMeasure> final_measures(std::int64_t cutoff, std::span<const NamedMetric> metrics = {});

TrialList finished_trials(const RankerTrials& ranker);

/// a − b on the folds and seeds that both have finished, where both saw the same queries and random draws.
FoldedValues paired_differences(const TrialList& a, const TrialList& b, const FinalMeasure& measure);

inline constexpr double kSignificance = 1.0 - kConfidence;

/// Two rankers a and b (or recommenders, or structures), compared on what both were measured on.
struct PairedComparison {
  std::size_t a = 0;  // indices in the caller's list
  std::size_t b = 0;
  FoldedValues differences;  // a − b
  PairedTest test;           // of these
  // Adjusted by correct(); NaN before.
  double t_holm = std::numeric_limits<double>::quiet_NaN();
  double flip_holm = std::numeric_limits<double>::quiet_NaN();

  /// Whether there were enough differences for a test.
  bool tested() const;
  /// Whether the t test rejects equality after the correction.
  bool significant() const { return t_holm < kSignificance; }
  MeanInterval difference_of(std::size_t one) const;
  /// Standard deviation of the independent differences; NaN with fewer than two.
  double deviation() const;
};

/// Student's test alone.
PairedComparison compared(std::size_t a, std::size_t b, FoldedValues differences);
/// Both tests, the sign flips with the draws of `measure`.
PairedComparison compared(std::size_t a, std::size_t b, FoldedValues differences,
                          const std::string& measure);

/// Holm's correction over a family of comparisons, for each of the two tests.
void correct(std::span<PairedComparison* const> family);
/// Corrects a family that is a list of comparisons, or of a kind of them.
template <std::derived_from<PairedComparison> Comparison>
void correct(std::vector<Comparison>& comparisons) {
  std::vector<PairedComparison*> family;
  family.reserve(comparisons.size());
  for (Comparison& comparison : comparisons) family.push_back(&comparison);
  correct(family);
}

/// The comparison of two, in either order; null if there is none.
const PairedComparison* comparison_of(std::span<const PairedComparison> comparisons, std::size_t one,
                                      std::size_t other);

/// The index of the best mean, the first of equal ones; the number of means if all are NaN.
std::size_t best_of(std::span<const double> means, bool larger_is_better);

}  // namespace olrank
