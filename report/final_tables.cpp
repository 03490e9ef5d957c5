#include "report/final_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/statistics/holm.h"
#include "core/text/counted.h"

namespace olrank {
namespace {

using Trials = std::vector<TrialList>;  // by row

std::vector<RankerPair> pairs_of(const Trials& trials, const FinalMeasure& measure) {
  std::vector<RankerPair> pairs;
  std::vector<double> t_p;
  std::vector<double> flip_p;
  for (std::size_t a = 0; a < trials.size(); ++a) {
    for (std::size_t b = a + 1; b < trials.size(); ++b) {
      const FoldedValues differences = paired_differences(trials[a], trials[b], measure);
      if (differences.empty()) continue;
      pairs.push_back({a, b, differences, paired_test(differences, measure.key()), 0.0, 0.0});
      t_p.push_back(pairs.back().test.t_p);
      flip_p.push_back(pairs.back().test.flip_p);
    }
  }
  const std::vector<double> t_holm = holm_adjusted(t_p);
  const std::vector<double> flip_holm = holm_adjusted(flip_p);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].t_holm = t_holm[i];
    pairs[i].flip_holm = flip_holm[i];
  }
  return pairs;
}

void mark_best(FinalColumn& column, const std::vector<bool>& skylines) {
  if (column.measure.better == Better::kNeither) return;
  const double sign = column.measure.better == Better::kLarger ? 1.0 : -1.0;
  std::size_t best = column.cells.size();
  for (std::size_t i = 0; i < column.cells.size(); ++i) {
    const double mean = column.cells[i].estimate.mean;
    if (std::isnan(mean) || skylines[i]) continue;
    if (best == column.cells.size() || sign * mean > sign * column.cells[best].estimate.mean) best = i;
  }
  if (best == column.cells.size()) return;
  // Where several have values and all are equal, none is the best.
  std::size_t others = 0;
  bool differ = false;
  for (std::size_t i = 0; i < column.cells.size(); ++i) {
    const double mean = column.cells[i].estimate.mean;
    if (i == best || std::isnan(mean) || skylines[i]) continue;
    ++others;
    differ = differ || mean != column.cells[best].estimate.mean;
  }
  if (others > 0 && !differ) return;
  for (std::size_t i = 0; i < column.cells.size(); ++i) {
    column.cells[i].best =
        !skylines[i] && column.cells[i].estimate.mean == column.cells[best].estimate.mean;
  }
  for (const RankerPair& pair : column.pairs) {
    if (pair.a != best && pair.b != best) continue;
    const std::size_t other = pair.a == best ? pair.b : pair.a;
    FinalCell& cell = column.cells[other];
    cell.not_worse = !cell.best && !skylines[other] && pair.t_holm >= kSignificance;
  }
}

FinalColumn column_of(const Trials& trials, const std::vector<bool>& skylines,
                      const FinalMeasure& measure) {
  FinalColumn column;
  column.measure = measure;
  for (const auto& of_row : trials) {
    const FoldedValues values = by_fold(of_row, measure.value);
    const NestedValues nested = nested_values(of_row, measure);
    column.over_queries = column.over_queries || over_queries(nested);
    column.cells.push_back(
        {mean_interval(values), hierarchical_bootstrap(nested, measure.key()), false, false});
  }
  if (measure.better != Better::kNeither) column.pairs = pairs_of(trials, measure);
  mark_best(column, skylines);
  return column;
}

bool has_values(const FinalColumn& column) {
  return std::any_of(column.cells.begin(), column.cells.end(),
                     [](const FinalCell& cell) { return !std::isnan(cell.estimate.mean); });
}

void count_units(FinalTable& table) {
  for (const FinalColumn& column : table.columns) {
    for (const FinalCell& cell : column.cells) {
      const std::size_t units = cell.estimate.units;
      if (units == 0) continue;
      table.fewest_units = table.most_units == 0 ? units : std::min(table.fewest_units, units);
      table.most_units = std::max(table.most_units, units);
      table.over_folds = table.over_folds || cell.estimate.over_folds;
    }
    for (const RankerPair& pair : column.pairs) table.tested = table.tested || !std::isnan(pair.test.t_p);
  }
}

std::string range_text(std::size_t fewest, std::size_t most) {
  return fewest == most ? fmt::format("{}", most) : fmt::format("{} to {}", fewest, most);
}

std::string interval_note(const FinalTable& table, const UserResults& user) {
  const std::string units = range_text(table.fewest_units, table.most_units);
  if (table.over_folds) {
    return fmt::format(
        "± is the half-width of a 95 % t interval over {} fold means, since trials of one fold are not "
        "independent.",
        units);
  }
  std::int64_t fold = 1;
  for (const RankerTrials& ranker : user.rankers) {
    for (const TrialResults* trial : ranker.trials) fold = trial->identity.fold;
  }
  return fmt::format(
      "± is the half-width of a 95 % t interval over {} seeds of fold {}; it holds for this fold only.",
      units, fold);
}

std::string test_note(const FinalTable& table) {
  if (table.rows.size() < 2) return " With a single ranker there is nothing to compare.";
  if (!table.tested) return " Without two finished trials that two rankers share, nothing is tested.";
  std::size_t fewest = 0;
  std::size_t most = 0;
  std::size_t pairs = 0;
  bool exact = true;
  for (const FinalColumn& column : table.columns) {
    pairs = std::max(pairs, column.pairs.size());
    for (const RankerPair& pair : column.pairs) {
      const std::size_t units = pair.test.difference.units;
      if (units < 2) continue;
      fewest = most == 0 ? units : std::min(fewest, units);
      most = std::max(most, units);
      exact = exact && pair.test.flips_exact;
    }
  }
  std::string text = fmt::format(
      " The best value is bold; ≈ marks values that are not significantly worse (two-sided paired t test "
      "on {}, n = {}, Holm's correction over {} of rankers, level 5 %).",
      table.over_folds ? "means over common folds" : "common seeds", range_text(fewest, most),
      counted(pairs, "pair"));
  if (exact) {
    text += fmt::format(
        " The table of pairs adds an exact sign-flip test; with n = {} its p value is at least {:.2g}.",
        fewest, std::pow(2.0, 1.0 - static_cast<double>(fewest)));
  } else {
    text +=
        " The table of pairs adds a sign-flip test, over 9,999 random patterns where enumerating all is "
        "too expensive.";
  }
  return text;
}

}  // namespace

const FinalColumn* FinalTable::column(Measure measure) const {
  for (const FinalColumn& column : columns) {
    if (column.measure.slug == slug_of(measure)) return &column;
  }
  return nullptr;
}

std::optional<std::size_t> baseline_row(const Report& report, const FinalTable& table) {
  for (std::size_t row = 0; report.baseline && row < table.rows.size(); ++row) {
    if (table.rows[row] == *report.baseline) return row;
  }
  const FinalColumn* offline = table.column(Measure::kOfflineNdcg);
  for (std::size_t row = 0; offline != nullptr && row < table.rows.size(); ++row) {
    if (offline->cells[row].best) return row;
  }
  return std::nullopt;
}

FinalTable final_table(const UserResults& user, std::int64_t cutoff) {
  FinalTable table;
  Trials trials;
  for (const RankerTrials& ranker : user.rankers) {
    trials.push_back(finished_trials(ranker));
    table.rows.push_back(ranker.ranker);
    table.finished.push_back(trials.back().size());
    table.skylines.push_back(ranker.skyline);
  }
  for (const FinalMeasure& measure : final_measures(cutoff, user.metrics(cutoff))) {
    FinalColumn column = column_of(trials, table.skylines, measure);
    if (has_values(column)) table.columns.push_back(std::move(column));
  }
  count_units(table);
  return table;
}

std::string table_note(const FinalTable& table, const UserResults& user) {
  if (table.columns.empty()) return "No trial has finished yet.";
  if (table.most_units < 2) {
    const std::string_view unit = table.over_folds ? "fold" : "seed";
    return fmt::format(
        "There is only one {0}, which does not show the spread between {0}s, so there are no intervals, "
        "bands or tests.",
        unit);
  }
  return interval_note(table, user) + test_note(table);
}

}  // namespace olrank
