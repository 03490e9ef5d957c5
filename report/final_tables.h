#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/final_measures.h"
#include "report/report.h"

namespace olrank {

struct FinalCell {
  MeanInterval estimate;  // NaN if no finished trial has a value
  bool best = false;
  bool not_worse = false;  // not significantly worse than the best
};

struct FinalColumn {
  FinalMeasure measure;
  std::vector<FinalCell> cells;         // one per row
  std::vector<PairedComparison> pairs;  // of rows a < b with common trials; empty if nothing is tested
};

struct FinalTable {
  std::vector<std::size_t> rows;      // indices of the report's rankers
  std::vector<std::size_t> finished;  // trials per row
  std::vector<bool> skylines;         // per row; never best
  std::vector<FinalColumn> columns;   // the measures that any ranker has values for
  bool over_folds = false;
  std::size_t fewest_trials = 0;  // over all cells with values
  std::size_t most_trials = 0;
  bool tested = false;  // at least one pair was

  /// Null if no ranker has values for the measure.
  const FinalColumn* column(Measure measure) const;
};

/// The final values of the user's finished trials, with Holm's correction over all pairs of rankers in each
/// column.
FinalTable final_table(const UserResults& user, std::int64_t cutoff);

/// One user of a data set, with that user's final table. Points into the report.
struct UserView {
  const Report& report;
  const DataResults& data;
  const UserResults& user;
  FinalTable table;
};
/// Each user of each data set.
std::vector<UserView> views_of(const Report& report);

/// A ranker that is not the best one, compared with it on the trials that both finished.
struct Rival {
  std::size_t row = 0;
  const PairedComparison* pair = nullptr;  // null without common trials
  double behind = 0.0;                     // mean difference to the best, positive if worse

  double half_width() const { return pair->test.difference.half_width; }
  bool tested() const { return pair != nullptr && pair->tested(); }
  bool worse() const { return pair != nullptr && pair->significant(); }
};

/// The rankers of a table in the order of one measure of which more is better. Skylines compete only with
/// each other.
struct Standings {
  const FinalColumn* column = nullptr;  // null without values
  std::size_t best = 0;                 // a row
  std::vector<Rival> rivals;            // best first
  std::vector<Rival> tied;              // those that are not significantly worse
  std::vector<Rival> worse;             // the others
  bool tested = false;                  // at least one rival was
  bool separates = false;               // at least one pair differs significantly, with the best or not
  std::size_t units = 0;                // the fewest seeds or folds of a comparison with the best
  std::string unit;                     // "seed" or "fold"
  std::vector<bool> considered;         // by row
};

Standings ranking_of(const FinalTable& table, Measure measure);

/// The row that differences are taken against: the report's baseline if the user has it, else the best
/// offline. None without finished trials.
std::optional<std::size_t> baseline_row(const Report& report, const FinalTable& table);

/// The note below the table: intervals, tests and n, or why there are none.
std::string table_note(const FinalTable& table, const UserResults& user);

}  // namespace olrank
