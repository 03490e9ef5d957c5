#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/statistics/hierarchical_bootstrap.h"
#include "core/statistics/paired_test.h"
#include "report/comparison.h"
#include "report/final_measures.h"

namespace olrank {

struct FinalCell {
  MeanInterval estimate;  // NaN if no finished trial has a value
  BootstrapInterval bootstrap;
  bool best = false;
  bool not_worse = false;  // not significantly worse than the best
};

/// Two rankers (rows a < b), compared on the trials that both have.
struct RankerPair {
  std::size_t a = 0;
  std::size_t b = 0;
  FoldedValues differences;  // a − b
  PairedTest test;           // of these
  double t_holm = 0.0;       // adjusted for all pairs of the column
  double flip_holm = 0.0;
};

/// One measure of all of a user's rankers.
struct FinalColumn {
  FinalMeasure measure;
  std::vector<FinalCell> cells;   // one per row
  std::vector<RankerPair> pairs;  // of rows; empty if nothing is tested
  bool over_queries = false;      // the bootstrap resamples queries too
};

struct FinalTable {
  std::vector<std::size_t> rows;      // indices of the report's rankers
  std::vector<std::size_t> finished;  // trials per row
  std::vector<bool> skylines;         // per row; never best
  std::vector<FinalColumn> columns;   // the measures that any ranker has values for
  bool over_folds = false;
  std::size_t fewest_units = 0;  // over all cells with values: fewest and most independent values
  std::size_t most_units = 0;
  bool tested = false;  // at least one pair was

  /// Null if no ranker has values for the measure.
  const FinalColumn* column(Measure measure) const;
};

/// The final values of the user's finished trials, with Holm's correction over all pairs of rankers in each
/// column.
FinalTable final_table(const UserResults& user, std::int64_t cutoff);

/// The row that differences are taken against: the report's baseline if the user has it, else the best
/// offline. None without finished trials.
std::optional<std::size_t> baseline_row(const Report& report, const FinalTable& table);

/// The note below the table: intervals, tests and n, or why there are none.
std::string table_note(const FinalTable& table, const UserResults& user);

}  // namespace olrank
