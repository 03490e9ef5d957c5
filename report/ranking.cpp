#include "report/ranking.h"

#include <algorithm>
#include <cmath>

namespace olrank {
namespace {

void add_rival(Ranking& ranking, std::size_t row) {
  Rival rival{row, nullptr, 0.0};
  for (const RankerPair& pair : ranking.column->pairs) {
    const bool first = pair.a == ranking.best && pair.b == row;
    if (!first && !(pair.b == ranking.best && pair.a == row)) continue;
    rival.pair = &pair;
    rival.behind = first ? pair.test.difference.mean : -pair.test.difference.mean;
    ranking.units = std::min(ranking.units, pair.test.difference.units);
  }
  ranking.tested = ranking.tested || rival.tested();
  (rival.worse() ? ranking.worse : ranking.tied).push_back(rival);
  ranking.rivals.push_back(rival);
}

}  // namespace

bool Rival::tested() const {
  return pair != nullptr && !std::isnan(pair->test.t_p);
}

bool Rival::worse() const {
  return tested() && pair->t_holm < kSignificance;
}

Ranking ranking_of(const FinalTable& table, Measure measure) {
  Ranking ranking;
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
  for (const RankerPair& pair : column->pairs) {
    ranking.separates = ranking.separates || (ranking.considered[pair.a] && ranking.considered[pair.b] &&
                                              pair.t_holm < kSignificance);
  }
  return ranking;
}

}  // namespace olrank
