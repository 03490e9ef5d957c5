#include "report/final_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text/message_text.h"

namespace olrank {
namespace {

using Trials = std::vector<TrialList>;  // by row

std::vector<PairedComparison> pairs_of(const Trials& trials, const FinalMeasure& measure) {
  std::vector<PairedComparison> pairs;
  for (std::size_t a = 0; a < trials.size(); ++a) {
    for (std::size_t b = a + 1; b < trials.size(); ++b) {
      FoldedValues differences = paired_differences(trials[a], trials[b], measure);
      if (!differences.empty()) pairs.push_back(compared(a, b, std::move(differences), measure.slug));
    }
  }
  correct(pairs);
  return pairs;
}

void mark_best(FinalColumn& column, const std::vector<bool>& skylines) {
  if (column.measure.better == Better::kNeither) return;
  std::vector<double> means;
  for (std::size_t i = 0; i < column.cells.size(); ++i)
    means.push_back(skylines[i] ? std::nan("") : column.cells[i].estimate.mean);
  const std::size_t best = best_of(means, column.measure.better == Better::kLarger);
  if (best == means.size()) return;
  // Where several have values and all are equal, none is the best.
  std::erase_if(means, [](double mean) { return std::isnan(mean); });
  const double height = column.cells[best].estimate.mean;
  if (means.size() > 1 && std::count(means.begin(), means.end(), height) == std::ssize(means)) return;
  for (std::size_t i = 0; i < column.cells.size(); ++i)
    column.cells[i].best = !skylines[i] && column.cells[i].estimate.mean == height;
  for (const PairedComparison& pair : column.pairs) {
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
    column.cells.push_back({mean_interval(by_fold(of_row, measure.value)), false, false});
  }
  if (measure.better != Better::kNeither) column.pairs = pairs_of(trials, measure);
  mark_best(column, skylines);
  return column;
}

void count_trials(FinalTable& table) {
  for (const FinalColumn& column : table.columns) {
    for (const FinalCell& cell : column.cells) {
      const std::size_t trials = cell.estimate.values;
      if (trials == 0) continue;
      table.fewest_trials = table.most_trials == 0 ? trials : std::min(table.fewest_trials, trials);
      table.most_trials = std::max(table.most_trials, trials);
      table.over_folds = table.over_folds || cell.estimate.over_folds;
    }
    for (const PairedComparison& pair : column.pairs) table.tested = table.tested || pair.tested();
  }
}

std::string range_text(std::size_t fewest, std::size_t most) {
  return fewest == most ? fmt::format("{}", most) : fmt::format("{} to {}", fewest, most);
}

std::string interval_note(const FinalTable& table, const UserResults& user) {
  const std::string trials = range_text(table.fewest_trials, table.most_trials);
  if (table.over_folds) {
    return fmt::format(
        "± is the half-width of a 95 % t interval over {} trials. Trials of one fold share their data, so "
        "it is rather too narrow for other folds; tests take the means over folds.",
        trials);
  }
  std::int64_t fold = 1;
  for (const RankerTrials& ranker : user.rankers) {
    for (const TrialResults* trial : ranker.trials) fold = trial->identity.fold;
  }
  return fmt::format(
      "± is the half-width of a 95 % t interval over {} seeds of fold {}; it holds for this fold only.",
      trials, fold);
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
    for (const PairedComparison& pair : column.pairs) {
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

void add_rival(Standings& ranking, std::size_t row) {
  Rival rival{row, comparison_of(ranking.column->pairs, ranking.best, row), 0.0};
  if (rival.pair != nullptr) {
    const MeanInterval difference = rival.pair->difference_of(ranking.best);
    rival.behind = difference.mean;
    ranking.units = std::min(ranking.units, difference.units);
  }
  ranking.tested = ranking.tested || rival.tested();
  (rival.worse() ? ranking.worse : ranking.tied).push_back(rival);
  ranking.rivals.push_back(rival);
}

}  // namespace

const FinalColumn* FinalTable::column(Measure measure) const {
  for (const FinalColumn& column : columns) {
    if (column.measure.slug == slug_of(measure)) return &column;
  }
  return nullptr;
}

Standings ranking_of(const FinalTable& table, Measure measure) {
  Standings ranking;
  const FinalColumn* column = table.column(measure);
  if (column == nullptr) return ranking;
  const auto has_value = [&](std::size_t row) { return !std::isnan(column->cells[row].estimate.mean); };
  bool only_skylines = true;
  for (std::size_t row = 0; row < table.rows.size(); ++row)
    only_skylines = only_skylines && (table.skylines[row] || !has_value(row));
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    ranking.considered.push_back(has_value(row) && (only_skylines || !table.skylines[row]));
    if (ranking.considered.back()) rows.push_back(row);
  }
  if (rows.empty()) return ranking;
  ranking.column = column;
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return column->cells[a].estimate.mean > column->cells[b].estimate.mean;
  });
  ranking.best = rows.front();
  ranking.unit = column->cells[ranking.best].estimate.over_folds ? "fold" : "seed";
  ranking.units = column->cells[ranking.best].estimate.units;
  for (std::size_t i = 1; i < rows.size(); ++i) add_rival(ranking, rows[i]);
  for (const PairedComparison& pair : column->pairs) {
    ranking.separates = ranking.separates ||
                        (ranking.considered[pair.a] && ranking.considered[pair.b] && pair.significant());
  }
  return ranking;
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
    if (std::ranges::any_of(column.cells,
                            [](const FinalCell& cell) { return !std::isnan(cell.estimate.mean); }))
      table.columns.push_back(std::move(column));
  }
  count_trials(table);
  return table;
}

std::vector<UserView> views_of(const Report& report) {
  std::vector<UserView> views;
  for (const DataResults& data : report.data) {
    for (const UserResults& user : data.users)
      views.push_back({report, data, user, final_table(user, data.cutoff)});
  }
  return views;
}

std::string table_note(const FinalTable& table, const UserResults& user) {
  if (table.columns.empty()) return "No trial has finished yet.";
  if (table.most_trials < 2) {
    const std::string_view unit = table.over_folds ? "fold" : "seed";
    return fmt::format(
        "There is only one {0}, which does not show the spread between {0}s, so there are no intervals, "
        "bands or tests.",
        unit);
  }
  return interval_note(table, user) + test_note(table);
}

}  // namespace olrank
