#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/math/philox.h"
#include "core/statistics/hierarchical_bootstrap.h"
#include "core/statistics/mean_interval.h"
#include "report/comparison.h"

namespace olrank {

/// Which of two values of a figure is better; figures without a better one are not tested.
enum class Better { kLarger, kSmaller, kNeither };

/// A figure that a finished trial ends with.
struct FinalFigure {
  std::string slug;
  std::string title;
  int digits = 4;
  Better better = Better::kLarger;
  std::function<double(const TrialResults&)> value;

  /// The coins of its resampling.
  PhiloxKey key() const;
};

/// Every figure that tables tell, of lists of `cutoff` documents.
std::vector<FinalFigure> final_figures(std::int64_t cutoff);

using TrialList = std::vector<const TrialResults*>;

TrialList finished_trials(const RankerTrials& ranker);

/// a − b on the folds and seeds that both have finished: there they met the same queries and coins.
FoldedValues paired_differences(const TrialList& a, const TrialList& b, const FinalFigure& figure);

/// What the bootstrap redraws: a trial's figure, or where it is a mean over queries whose values the trials
/// keep, these.
NestedValues nested_values(const TrialList& trials, const FinalFigure& figure);
NestedValues nested_differences(const TrialList& a, const TrialList& b, const FinalFigure& figure);

/// Whether some trial of them holds more than one value.
bool over_queries(const NestedValues& values);

}  // namespace olrank
