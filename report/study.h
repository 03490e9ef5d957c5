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

class Page;
struct ReportFigure;

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
  std::vector<FinalMeasure> measures = {};
  std::vector<StudyUser> users = {};
  std::int64_t finished = 0;  // trials
  std::int64_t expected = 0;

  const StudyCell& cell_of(const StudyRow& row) const { return plan.cells[row.cell]; }
  const StudyValue* value(const StudyRow& row, const std::string& slug) const;
};

Study analyse_study(const ExperimentResults& results, StudyPlan plan);

/// Findings are what the tests of one user's finished trials say.
struct Findings {
  std::string headline;                // one sentence
  std::vector<std::string> sentences;  // by how much, and what would tell more
};

/// Which structures differ from the exact one, and by structure quality, certain share and cost.
Findings study_findings(const Study& study, const StudyUser& user);

/// A cell's structure without width and depth, and its noise if the plan has several: "ensemble-2, ν² 0.1".
std::string structure_name(const StudyPlan& plan, const StudyCell& cell);

/// The structures' names, in the plan's order.
std::vector<std::string> structure_names(const StudyPlan& plan);

/// "m = 16", and the number of layers if the study has several.
std::string size_name(const StudyPlan& plan, const StudyCell& cell);

/// Whether the value was compared with the exact structure and differs after Holm's correction.
bool is_significant(const StudyValue* value);

/// The row's widths relative to exact ones at the last evaluation; null without widths of its own or
/// without exact ones to compare them with.
const StudyWidths* final_widths(const StudyRow& row, const StudyCell& cell);

/// Findings and tables for a terminal of this width; 0 is no limit.
std::string study_text(const Study& study, std::int64_t columns);

/// The answer for one user: each structure minus the exact one in offline NDCG and in certain share, and
/// its time per round over the exact one's. Empty if nothing is compared.
std::vector<ReportFigure> study_answers(const Study& study, const StudyUser& user);

/// The study's section of a page: its answer, its figures and a table of paired differences for each user.
void add_study(Page& page, const Study& study, const std::string& label);

}  // namespace olrank
