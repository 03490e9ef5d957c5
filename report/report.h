#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/statistics/t_tests.h"
#include "report/experiment_results.h"
#include "report/measure.h"

namespace olrank {

struct RoundEstimate {
  std::int64_t round = 0;
  MeanInterval estimate;
};

/// A mean curve: each point is over the trials evaluated at that round.
using MeanCurve = std::vector<RoundEstimate>;

/// A ranker of the report. Its index determines its colour, dash pattern and marker in every figure.
struct ReportedRanker {
  std::string name;  // followed by its folder's label if different rankers share the name
  std::string summary;
  bool skyline = false;  // learns from the true grades: shown, but never the best

  /// The summary without the leading name.
  std::string details() const;
};

struct RankerTrials {
  std::size_t ranker = 0;  // index among the report's rankers
  bool skyline = false;
  TrialList trials;
  std::map<Measure, MeanCurve> curves;  // of the measures that have values

  /// Empty without values.
  const MeanCurve& curve(Measure measure) const;
};

struct UserResults {
  std::string user;
  std::vector<RankerTrials> rankers;

  /// Lists protocol.metrics of any trial, without their random orders and without NDCG at the experiment's
  /// cutoff, which every experiment has.
  std::vector<NamedMetric> metrics(std::int64_t cutoff) const;
};

struct DataResults {
  std::string data;
  std::int64_t cutoff = 10;
  std::vector<UserResults> users;
};

/// Everything that the page, tables and exports show. Owns the trials that its parts point to.
struct Report {
  Report() = default;
  Report(Report&&) = default;
  Report& operator=(Report&&) = default;
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  ~Report() = default;

  std::vector<ExperimentResults> experiments;
  std::vector<std::string> labels;  // a short name per experiment folder
  std::vector<ReportedRanker> rankers;
  std::vector<DataResults> data;
  std::vector<std::string> warnings;  // damaged files; differences between experiments
  // The ranker that differences are taken against; without one, each user's best offline.
  std::optional<std::size_t> baseline;
};

/// Joins experiments. Rankers with equal name, settings and protocol become one, across folders; data sets
/// stay separate. Every difference in data or protocol becomes a warning. The baseline is the ranker of
/// that name; by default the exact structure if all experiments are studies with a single one. Throws
/// InvalidArgument, naming the nearest ranker, if there is none of that name.
Report compare_experiments(std::vector<ExperimentResults> experiments, const std::string& baseline = "");

/// The last part of a data set's path, or its whole name if another data set of the report has that part,
/// too.
std::string short_name(const Report& report, const DataResults& data);

/// Rounds, ascending, and values.
using Curve = std::vector<std::pair<std::int64_t, double>>;

/// The curves behind a mean curve, one for each trial.
std::vector<Curve> trial_curves(const TrialList& trials, Measure measure);

/// Two rankers differ by these over the rounds, on the folds and seeds that both played.
struct DifferenceCurves {
  MeanCurve mean;
  std::vector<Curve> trials;
};

/// a − b.
DifferenceCurves difference_curves(const TrialList& a, const TrialList& b, Measure measure);

std::size_t most_trials(const MeanCurve& curve);

/// The trials' finite values by fold, folds ascending.
FoldedValues by_fold(const TrialList& trials, const std::function<double(const TrialResults&)>& value);

}  // namespace olrank
