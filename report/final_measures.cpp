#include "report/final_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/random/rng_stream.h"
#include "core/statistics/curve_area.h"

namespace olrank {
namespace {

double last(const TrialResults& trial, Measure measure) {
  return trial.last[measure];
}

/// Of whole curves only: a damaged one has lost its end.
double area(const TrialResults& trial, Measure measure) {
  if (!trial.curve.complaint.empty()) return std::nan("");
  std::vector<double> rounds;
  std::vector<double> values;
  for (const CurveEvaluation& point : trial.curve.points) {
    rounds.push_back(static_cast<double>(point.round));
    values.push_back(point.values[measure]);
  }
  return curve_area(rounds, values);
}

using TrialPlace = std::pair<std::int64_t, std::int64_t>;  // fold and seed

std::map<TrialPlace, const TrialResults*> by_place(const TrialList& trials) {
  std::map<TrialPlace, const TrialResults*> places;
  for (const TrialResults* trial : trials) places[{trial->identity.fold, trial->identity.seed}] = trial;
  return places;
}

bool is_mean_over_queries(const FinalFigure& figure) {
  return figure.slug == slug_of(Measure::kOfflineNdcg);
}

NestedValues nested_by_fold(const std::map<std::int64_t, std::vector<std::vector<double>>>& folds) {
  NestedValues nested;
  for (const auto& [fold, seeds] : folds) nested.push_back(seeds);
  return nested;
}

/// Queries that conventions leave out count in no mean.
std::vector<double> told(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  return values;
}

}  // namespace

PhiloxKey FinalFigure::key() const {
  return make_key({.purpose = Purpose::kResampling, .click_model = name_hash(slug.data(), slug.size())});
}

std::vector<FinalFigure> final_figures(std::int64_t cutoff) {
  const auto figure = [&](Measure measure, int digits, Better better) {
    return FinalFigure{slug_of(measure), title_of(measure, cutoff), digits, better,
                       [measure](const TrialResults& trial) { return last(trial, measure); }};
  };
  return {figure(Measure::kOfflineNdcg, 4, Better::kLarger),
          {"offline-area", fmt::format("Area under offline NDCG@{}", cutoff), 4, Better::kLarger,
           [](const TrialResults& trial) { return area(trial, Measure::kOfflineNdcg); }},
          figure(Measure::kDiscountedNdcg, 1, Better::kLarger),
          figure(Measure::kRegret, 0, Better::kSmaller),
          figure(Measure::kCosine, 4, Better::kLarger),
          figure(Measure::kCertainShare, 3, Better::kNeither),
          figure(Measure::kMilliseconds, 3, Better::kNeither)};
}

TrialList finished_trials(const RankerTrials& ranker) {
  TrialList finished;
  for (const TrialResults* trial : ranker.trials) {
    if (trial->finished) finished.push_back(trial);
  }
  return finished;
}

FoldedValues paired_differences(const TrialList& a, const TrialList& b, const FinalFigure& figure) {
  const auto of_b = by_place(b);
  return by_fold(a, [&](const TrialResults& trial) {
    const auto partner = of_b.find({trial.identity.fold, trial.identity.seed});
    return partner == of_b.end() ? std::nan("") : figure.value(trial) - figure.value(*partner->second);
  });
}

NestedValues nested_values(const TrialList& trials, const FinalFigure& figure) {
  std::map<std::int64_t, std::vector<std::vector<double>>> folds;
  for (const TrialResults* trial : trials) {
    std::vector<double> values;
    if (is_mean_over_queries(figure)) values = told(trial->queries);
    if (values.empty()) values = told({figure.value(*trial)});
    if (!values.empty()) folds[trial->identity.fold].push_back(std::move(values));
  }
  return nested_by_fold(folds);
}

NestedValues nested_differences(const TrialList& a, const TrialList& b, const FinalFigure& figure) {
  const auto of_b = by_place(b);
  std::map<std::int64_t, std::vector<std::vector<double>>> folds;
  for (const TrialResults* trial : a) {
    const auto found = of_b.find({trial->identity.fold, trial->identity.seed});
    if (found == of_b.end()) continue;
    const TrialResults& partner = *found->second;
    std::vector<double> values;
    if (is_mean_over_queries(figure) && trial->queries.size() == partner.queries.size()) {
      values = trial->queries;
      for (std::size_t i = 0; i < values.size(); ++i) values[i] -= partner.queries[i];
      values = told(std::move(values));
    }
    if (values.empty()) values = told({figure.value(*trial) - figure.value(partner)});
    if (!values.empty()) folds[trial->identity.fold].push_back(std::move(values));
  }
  return nested_by_fold(folds);
}

bool over_queries(const NestedValues& values) {
  return std::any_of(values.begin(), values.end(), [](const auto& fold) {
    return std::any_of(fold.begin(), fold.end(), [](const auto& seed) { return seed.size() > 1; });
  });
}

}  // namespace olrank
