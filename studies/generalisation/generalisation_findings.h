#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/statistics/t_tests.h"
#include "core/text/text_table.h"
#include "jobs/experiment_setup.h"
#include "report/plot.h"
#include "studies/generalisation/generalisation_plan.h"

namespace olrank {

/// A row with what its cell is.
struct StudiedRow {
  char experiment = 'A';
  std::int64_t seed = 0;
  CellRow row;
};

/// An upper bound of the theory on one measured figure, such as a slope of logs.
struct TheoryClaim {
  char experiment = 'A';
  std::string subject;            // "listnet, preferences by query"
  std::string quantity;           // "slope over m"
  MeanInterval estimate;          // over seeds, or folds
  std::optional<double> at_most;  // what the theory says; nothing where it only describes
  bool is_difference = false;     // a test against 0, without a margin

  /// "holds, reached": the interval is below the bound or hardly above it, and near it; "holds": well
  /// below; "open": the interval straddles it; "above": all of it is above. "–" without a bound. A slope
  /// above its figure does not contradict a theorem, which bounds values and not slopes over some sizes.
  std::string verdict() const;
};

/// How far an interval may reach beyond a bound on a slope before the claim is open.
inline constexpr double kSlopeMargin = 0.05;
/// How near to a bound on a slope an estimate counts as having reached it.
inline constexpr double kSlopeReached = 0.1;

struct NamedFigure {
  std::string name;
  char experiment = 'A';
  Plot figure;
};

struct GeneralisationFindings {
  std::vector<TheoryClaim> claims;
  std::vector<NamedFigure> figures;
};

/// The slopes of log y over the logs of x: least squares for each seed, then their mean and t interval over
/// seeds. Rows whose y is not positive are left out.
std::vector<MeanInterval> log_slopes(const std::vector<StudiedRow>& rows, const std::string& y,
                                     const std::vector<std::string>& x);

GeneralisationFindings find_generalisation(const std::vector<StudiedRow>& rows);

/// Claims and the points of figures; nothing about time or machine.
nlohmann::ordered_json findings_json(const GeneralisationFindings& findings,
                                     const GeneralisationPlan& plan);
std::string findings_text(const GeneralisationFindings& findings, int columns);

struct GeneralisationRequest {
  std::vector<std::string> data;  // folders of real lists
  std::string out;
  int jobs = 1;  // cells at once
};

/// Computes the plan's cells that the output folder lacks and, once it has all, writes and prints the
/// findings. Reads the lists of the request's folders into the plan. Returns the exit code.
int run_generalisation(GeneralisationPlan plan, const GeneralisationRequest& generalisation,
                       const ExperimentRequest& request, const std::string& command, const OutputForm& form,
                       const TextSink& print);

}  // namespace olrank
