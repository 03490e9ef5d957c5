#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/statistics/hierarchical_bootstrap.h"
#include "core/statistics/paired_test.h"
#include "report/comparison.h"
#include "report/final_figures.h"

namespace olrank {

struct FinalCell {
  MeanInterval estimate;  // NaN where no finished trial has the figure
  BootstrapInterval bootstrap;
  bool best = false;
  bool not_worse = false;  // not significantly worse than the best
};

/// Two rankers, a before b in the rows, on the trials that both have.
struct RankerPair {
  std::size_t a = 0;
  std::size_t b = 0;
  PairedTest test;      // of a − b
  double t_holm = 0.0;  // adjusted for all pairs of the column
  double flip_holm = 0.0;
};

/// One figure of all rankers of a user.
struct FinalColumn {
  FinalFigure figure;
  std::vector<FinalCell> cells;   // a row
  std::vector<RankerPair> pairs;  // of rows; empty where nothing is tested
  bool over_queries = false;      // the bootstrap redraws queries too
};

struct FinalTable {
  std::vector<std::size_t> rows;      // indices among the report's rankers
  std::vector<std::size_t> finished;  // trials of each row
  std::vector<FinalColumn> columns;   // those that some ranker has values for
  bool over_folds = false;
  std::size_t fewest_units = 0;  // independent values of a row with values: fewest and most
  std::size_t most_units = 0;
  bool tested = false;  // some pair could be
};

/// The figures of the user's finished trials, with Holm's correction over all pairs of rankers in each
/// column.
FinalTable final_table(const UserResults& user, std::int64_t cutoff);

/// What stands under the table: intervals, tests, n, or why there are none.
std::string table_note(const FinalTable& table, const UserResults& user);

/// The level of the tests.
inline constexpr double kSignificance = 1.0 - kConfidence;

}  // namespace olrank
