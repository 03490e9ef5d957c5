#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/experiment_results.h"
#include "report/final_measures.h"
#include "report/run_description.h"

namespace olrank {

/// A cell's value of a measure, and its difference from the exact structure of the same width and depth.
struct StudyValue {
  MeanInterval estimate;
  /// This − exact, on the trials that both have; none where the exact structure has none. The correction is
  /// over all of the user's comparisons of the measure; a measure without a better direction has none.
  std::optional<PairedComparison> minus_exact = {};
};

/// Quantiles of width / exact width at an evaluation, averaged over trials.
struct StudyWidths {
  std::int64_t round = 0;
  double median = 0.0;
  double low = 0.0;   // 10th percentile
  double high = 0.0;  // 90th percentile
};

struct StudyRow {
  std::size_t cell = 0;  // index in the plan
  std::size_t trials = 0;
  std::int64_t parameters = 0;
  std::vector<StudyValue> values;  // one per Study::measures
  MeanInterval log_time;           // of the time per round over the exact structure's; NaN if not compared
  std::vector<StudyWidths> widths;
  std::vector<std::pair<std::string, double>> stages;  // mean milliseconds per round
};

struct StudyUser {
  std::string user;
  std::vector<StudyRow> rows;  // cells with a finished trial
};

/// A comparison of covariance structures, from an experiment's trials.
struct Study {
  StudyPlan plan;
  RunDescription run;
  std::int64_t cutoff = 10;
  std::vector<FinalMeasure> measures;
  std::vector<StudyUser> users;
  std::int64_t finished = 0;  // trials
  std::int64_t expected = 0;

  const StudyValue* value(const StudyRow& row, const std::string& slug) const;
};

Study analyse_study(const ExperimentResults& results, StudyPlan plan);

}  // namespace olrank
