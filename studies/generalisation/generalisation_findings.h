#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/statistics/t_tests.h"
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

}  // namespace olrank
