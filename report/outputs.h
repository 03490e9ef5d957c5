#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "report/experiment_results.h"
#include "report/final_tables.h"
#include "report/plot.h"
#include "report/report.h"
#include "report/study.h"

namespace olrank {

/// Every final value and every point of every mean curve, one line each:
/// data,clicks,ranker,figure,round,mean,low,high,trials,units,best,not_worse. Final values have no round.
std::string report_csv(const Report& report);

/// Adds tests of ranker pairs, warnings and missing trials to what the CSV has.
std::string report_json(const Report& report);

/// The study's results and its plan, which read_study_plan() reads back.
std::string study_json(const Study& study);

/// One line per user, ranker and measure: the mean, and the paired difference from the exact structure.
std::string study_csv(const Study& study);

/// LaTeX tables (booktabs) of offline and online NDCG with their intervals, and below each value the paired
/// difference from the baseline. A table with one user fits a column; those of several users, side by side,
/// span the page. `users` holds the users of each table; empty: a table for each user. Throws
/// InvalidArgument at an unknown user.
std::string report_latex(const Report& report, const std::vector<std::vector<std::string>>& users = {});

/// summary.csv: one line per trial; equal results give equal bytes.
std::string summary_csv(const TrialList& trials);

/// A table of means for each ranker and user, each ± half the width of its 95 % t interval over trials. At
/// most `columns` wide unless 0: names are shortened, then columns are dropped: rounds/s, trials, wrong,
/// certain, online.
std::string summary_text(const TrialList& trials, const ResultConventions& about, std::int64_t columns = 0);
/// Writes the means as JSON, with the conventions in every row.
std::string summary_means_json(const TrialList& trials, const ResultConventions& about);

/// Figures show at most this many rankers: the best by offline NDCG.
inline constexpr std::size_t kMostRankers = 12;

/// The user's rankers that figures show, in the report's order.
std::vector<const RankerTrials*> shown_rankers(const UserResults& user);

/// The ranker that figures take differences against; null where there is nothing to compare.
const RankerTrials* baseline_of(const UserView& view);

/// Every figure that the user's trials have data for.
std::vector<ReportFigure> figures_of(const UserView& view);

/// A figure and the name of its files, "perfect-ndcg".
struct PlacedFigure {
  std::string name;
  ReportFigure figure;
};

/// Each figure of each user, and of studies.
std::vector<PlacedFigure> placed_figures(const Report& report);

/// Writes the placed figures into the folder: NAME.svg for light ground, NAME-dark.svg, and their numbers
/// as NAME.csv. Returns the number of figures.
std::size_t write_figures(const Report& report, const std::filesystem::path& folder);

/// Below this many seeds (or folds), spreads are too uncertain for bands around curves.
inline constexpr std::size_t kFewUnits = 4;

/// Who is best offline and online, by how much, and who is not distinguishable, by the tests of the user's
/// final table.
Findings findings_of(const UserView& view);
/// "perfect user", with the data set if the report has several.
std::string whose_findings(const UserView& view);

/// Whether every experiment is a study of covariances, whose findings are about structures instead of
/// rankers.
bool are_studies(const Report& report);

/// All users' findings for a terminal, wrapped at `columns`; 0 wraps nothing.
std::string findings_text(const Report& report, std::int64_t columns);

/// The report as one self-contained HTML page without scripts.
std::string report_page(const Report& report);

}  // namespace olrank
