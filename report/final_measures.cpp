#include "report/final_measures.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

/// NaN for a damaged curve, which lacks its end.
double area(const TrialResults& trial, Measure measure) {
  if (!trial.curve.damage.empty()) return std::nan("");
  std::vector<double> rounds;
  std::vector<double> values;
  for (const CurveEvaluation& point : trial.curve.points) {
    rounds.push_back(static_cast<double>(point.round));
    values.push_back(point.values[measure]);
  }
  return curve_area(rounds, values);
}

using FoldAndSeed = std::pair<std::int64_t, std::int64_t>;

std::map<FoldAndSeed, const TrialResults*> by_fold_and_seed(const TrialList& trials) {
  std::map<FoldAndSeed, const TrialResults*> found;
  for (const TrialResults* trial : trials) found[{trial->identity.fold, trial->identity.seed}] = trial;
  return found;
}

/// The key of the draws that flip the signs of a measure's differences.
PhiloxKey resampling_key(const std::string& measure) {
  return make_key(
      {.purpose = Purpose::kResampling, .click_model = name_hash(measure.data(), measure.size())});
}

}  // namespace

double final_value(const TrialResults& trial, Measure measure) {
  switch (measure) {
    case Measure::kFalseCertain:
    case Measure::kDecisionsDiffer:
      return whole_trial_share(trial.curve, measure);
    case Measure::kUnfairness:
      return std::abs(trial.last[measure]);
    default:
      return trial.last[measure];
  }
}

MeanInterval final_mean(const TrialList& trials, Measure measure) {
  return mean_interval(
      by_fold(trials, [measure](const TrialResults& trial) { return final_value(trial, measure); }));
}

std::vector<FinalMeasure> final_measures(std::int64_t cutoff, std::span<const NamedMetric> metrics) {
  const auto last_value = [&](Measure measure, int digits, Better better) {
    return FinalMeasure{slug_of(measure), title_of(measure, cutoff), digits, better,
                        [measure](const TrialResults& trial) { return final_value(trial, measure); }};
  };
  const auto titled = [](const char* title, FinalMeasure measure) {
    measure.title = title;
    return measure;
  };
  std::vector<FinalMeasure> measures = {
      last_value(Measure::kOfflineNdcg, 4, Better::kLarger),
      {"offline-area", fmt::format("Area under offline NDCG@{}", cutoff), 4, Better::kLarger,
       [](const TrialResults& trial) { return area(trial, Measure::kOfflineNdcg); }}};
  for (const NamedMetric& metric : metrics) {
    const Better better = metric.larger_is_better() ? Better::kLarger : Better::kSmaller;
    measures.push_back(last_value(measure_of(metric),
                                  metric.is_share() || metric.kind == MetricKind::kOwn ? 4 : 2, better));
  }
  measures.insert(
      measures.end(),
      {last_value(Measure::kDiscountedNdcg, 1, Better::kLarger),
       last_value(Measure::kRegret, 0, Better::kSmaller),
       titled("Size of the unfairness", last_value(Measure::kUnfairness, 2, Better::kSmaller)),
       last_value(Measure::kFairShare, 4, Better::kLarger),
       last_value(Measure::kViolations, 2, Better::kSmaller),
       last_value(Measure::kUnrealisable, 0, Better::kNeither),
       last_value(Measure::kCosine, 4, Better::kLarger),
       last_value(Measure::kCertainShare, 3, Better::kNeither),
       titled("Wrong among the certain orders", last_value(Measure::kFalseCertain, 3, Better::kSmaller)),
       last_value(Measure::kMilliseconds, 3, Better::kNeither)});
  return measures;
}

TrialList finished_trials(const RankerTrials& ranker) {
  TrialList finished = ranker.trials;
  std::erase_if(finished, [](const TrialResults* trial) { return !trial->finished; });
  return finished;
}

FoldedValues paired_differences(const TrialList& a, const TrialList& b, const FinalMeasure& measure) {
  const auto of_b = by_fold_and_seed(b);
  return by_fold(a, [&](const TrialResults& trial) {
    const auto partner = of_b.find({trial.identity.fold, trial.identity.seed});
    return partner == of_b.end() ? std::nan("") : measure.value(trial) - measure.value(*partner->second);
  });
}

bool PairedComparison::tested() const {
  return !std::isnan(test.t_p);
}

MeanInterval PairedComparison::difference_of(std::size_t one) const {
  MeanInterval difference = test.difference;
  if (one == b) difference.mean = -difference.mean;
  return difference;
}

double PairedComparison::deviation() const {
  return deviation_of(independent_values(differences));
}

PairedComparison compared(std::size_t a, std::size_t b, FoldedValues differences) {
  const PairedTest test = paired_test(differences);
  return {a, b, std::move(differences), test};
}

PairedComparison compared(std::size_t a, std::size_t b, FoldedValues differences,
                          const std::string& measure) {
  const PairedTest test = paired_test(differences, resampling_key(measure));
  return {a, b, std::move(differences), test};
}

void correct(std::span<PairedComparison* const> family) {
  std::vector<double> t_p;
  std::vector<double> flip_p;
  for (const PairedComparison* comparison : family) {
    t_p.push_back(comparison->test.t_p);
    flip_p.push_back(comparison->test.flip_p);
  }
  const std::vector<double> t_holm = holm_adjusted(t_p);
  const std::vector<double> flip_holm = holm_adjusted(flip_p);
  for (std::size_t i = 0; i < family.size(); ++i) {
    family[i]->t_holm = t_holm[i];
    family[i]->flip_holm = flip_holm[i];
  }
}

const PairedComparison* comparison_of(std::span<const PairedComparison> comparisons, std::size_t one,
                                      std::size_t other) {
  for (const PairedComparison& comparison : comparisons) {
    if ((comparison.a == one && comparison.b == other) || (comparison.a == other && comparison.b == one))
      return &comparison;
  }
  return nullptr;
}

std::size_t best_of(std::span<const double> means, bool larger_is_better) {
  std::size_t best = means.size();
  for (std::size_t i = 0; i < means.size(); ++i) {
    if (std::isnan(means[i])) continue;
    if (best == means.size() || (larger_is_better ? means[i] > means[best] : means[i] < means[best]))
      best = i;
  }
  return best;
}

}  // namespace olrank
