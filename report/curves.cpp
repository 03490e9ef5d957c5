#include "report/curves.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace olrank {
namespace {

using FoldAndSeed = std::pair<std::int64_t, std::int64_t>;
/// By fold and seed, then by round.
using TrialCurves = std::map<FoldAndSeed, std::map<std::int64_t, double>>;

TrialCurves curves_of(const std::vector<const TrialResults*>& trials, Measure measure) {
  TrialCurves curves;
  for (const TrialResults* trial : trials) {
    for (const CurveEvaluation& point : trial->curve.points) {
      const double value = point.values[measure];
      if (std::isfinite(value))
        curves[{trial->identity.fold, trial->identity.seed}].emplace(point.round, value);
    }
  }
  return curves;
}

std::vector<Curve> units_of(const TrialCurves& curves) {
  std::map<std::int64_t, std::map<std::int64_t, std::vector<double>>> folds;  // by fold and round
  for (const auto& [place, curve] : curves) {
    for (const auto& [round, value] : curve) folds[place.first][round].push_back(value);
  }
  std::vector<Curve> units;
  if (folds.size() < 2) {
    for (const auto& [place, curve] : curves) units.emplace_back(curve.begin(), curve.end());
    return units;
  }
  for (const auto& [fold, rounds] : folds) {
    Curve unit;
    for (const auto& [round, values] : rounds) unit.emplace_back(round, mean_of(values));
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace

std::vector<Curve> unit_curves(const std::vector<const TrialResults*>& trials, Measure measure) {
  return units_of(curves_of(trials, measure));
}

DifferenceCurves difference_curves(const std::vector<const TrialResults*>& a,
                                   const std::vector<const TrialResults*>& b, Measure measure) {
  TrialCurves differences;
  const TrialCurves of_b = curves_of(b, measure);
  for (const auto& [place, curve] : curves_of(a, measure)) {
    const auto partner = of_b.find(place);
    if (partner == of_b.end()) continue;
    for (const auto& [round, value] : curve) {
      const auto other = partner->second.find(round);
      if (other != partner->second.end()) differences[place].emplace(round, value - other->second);
    }
  }
  std::map<std::int64_t, std::map<std::int64_t, std::vector<double>>> rounds;  // by round and fold
  for (const auto& [place, curve] : differences) {
    for (const auto& [round, value] : curve) rounds[round][place.first].push_back(value);
  }
  DifferenceCurves result;
  for (const auto& [round, folds] : rounds) {
    FoldedValues values;
    for (const auto& [fold, of_fold] : folds) values.push_back(of_fold);
    result.mean.push_back({round, mean_interval(values)});
  }
  result.units = units_of(differences);
  return result;
}

std::size_t most_units(const MeanCurve& curve) {
  std::size_t most = 0;
  for (const RoundEstimate& point : curve) most = std::max(most, point.estimate.units);
  return most;
}

}  // namespace olrank
