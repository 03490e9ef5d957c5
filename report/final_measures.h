#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/statistics/hierarchical_bootstrap.h"
#include "core/statistics/mean_interval.h"
#include "report/report.h"

namespace olrank {

/// Which of two values is better; a measure without a better direction is not tested.
enum class Better { kLarger, kSmaller, kNeither };

/// A number that a finished trial ends with.
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

/// The values that the bootstrap resamples: per-query values where the measure is their mean and the trials
/// kept them, else one value per trial.
NestedValues nested_values(const TrialList& trials, const FinalMeasure& measure);
NestedValues nested_differences(const TrialList& a, const TrialList& b, const FinalMeasure& measure);

/// Whether any trial has more than one value.
bool over_queries(const NestedValues& values);

}  // namespace olrank
