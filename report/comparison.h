#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/statistics/mean_interval.h"
#include "report/experiment_results.h"
#include "report/measure.h"

namespace olrank {

struct RoundEstimate {
  std::int64_t round = 0;
  MeanInterval estimate;
};

/// A mean curve: at each round over the trials that have it.
using MeanCurve = std::vector<RoundEstimate>;

/// A ranker of the page. Its place in the list decides colour, dashes and marker everywhere.
struct ReportedRanker {
  std::string name;  // with its folder's, where rankers of one name differ
  std::string summary;

  /// The summary without what the name says already.
  std::string besides_name() const;
};

/// The trials of one ranker with one user on one data set.
struct RankerTrials {
  std::size_t ranker = 0;  // index among the report's rankers
  std::vector<const TrialResults*> trials;
  std::array<MeanCurve, kMeasures> curves;

  const MeanCurve& curve(Measure measure) const { return curves[static_cast<std::size_t>(measure)]; }
};

struct UserResults {
  std::string user;
  std::vector<RankerTrials> rankers;
};

struct DataResults {
  std::string data;
  std::int64_t cutoff = 10;
  std::vector<UserResults> users;
};

/// Everything that a page, a table or a file tells. It owns the trials that its parts point to.
struct Report {
  Report() = default;
  Report(Report&&) = default;
  Report& operator=(Report&&) = default;
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  ~Report() = default;

  std::vector<ExperimentResults> experiments;
  std::vector<std::string> labels;  // a short name for each experiment's folder
  std::vector<ReportedRanker> rankers;
  std::vector<DataResults> data;
  std::vector<std::string> warnings;  // damaged files; differences between experiments
};

/// Joins experiments: the same ranker under the same protocol counts as one, whatever folder its trials are
/// in; data sets stay apart. Every difference of data or protocol becomes a warning.
Report compare_experiments(std::vector<ExperimentResults> experiments);

/// Values of trials by folds, in ascending order of folds; values that are no numbers are left out.
FoldedValues by_fold(const std::vector<const TrialResults*>& trials,
                     const std::function<double(const TrialResults&)>& value);

}  // namespace olrank
