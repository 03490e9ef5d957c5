#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/statistics/paired_test.h"
#include "report/experiment_results.h"
#include "report/final_figures.h"
#include "report/study_plan.h"

namespace olrank {

/// A figure of a cell, and how it stands against the exact structure of the same width and depth.
struct StudyValue {
  MeanInterval estimate;
  bool compared = false;  // what follows is told
  PairedTest difference;  // this − exact, on the trials that both have
  double t_holm = 0.0;    // for all structures that the user's exact ones are compared with
  BootstrapInterval bootstrap;
  bool over_queries = false;  // the bootstrap redrew queries too
};

/// Quantiles of own over exact widths at an evaluation, means over trials.
struct StudyWidths {
  std::int64_t round = 0;
  double median = 0.0;
  double low = 0.0;   // 10th percentile
  double high = 0.0;  // 90th percentile
};

struct StudyRow {
  std::size_t cell = 0;  // of the plan
  std::size_t trials = 0;
  std::int64_t parameters = 0;
  std::vector<StudyValue> values;  // by the study's figures
  std::vector<StudyWidths> widths;
  std::vector<std::pair<std::string, double>> stages;  // milliseconds a round, means
};

struct StudyUser {
  std::string user;
  std::vector<StudyRow> rows;  // cells with a finished trial
};

/// Covariance structures compared, from the trials of an experiment.
struct Study {
  StudyPlan plan;
  RunDescription run;
  std::int64_t cutoff = 10;
  std::vector<FinalFigure> figures;
  std::vector<StudyUser> users;
  std::int64_t finished = 0;  // trials
  std::int64_t expected = 0;

  const StudyValue* value(const StudyRow& row, const std::string& slug) const;
};

Study analyse_study(const ExperimentResults& results, StudyPlan plan);

/// Share over a whole trial of what its evaluations counted: false certainty, decisions that differ. NaN
/// where nothing was counted.
double whole_trial_share(const RecordedCurve& curve, Measure measure);

}  // namespace olrank
