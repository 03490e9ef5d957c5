#include "report/study.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/statistics/holm.h"

namespace olrank {
namespace {

/// Mean over the rounds: each evaluation after the first counts for the rounds since the previous one.
double mean_over_curve(const RecordedCurve& curve, Measure measure) {
  double sum = 0.0;
  double rounds = 0.0;
  std::int64_t before = 0;
  for (const CurveEvaluation& point : curve.points) {
    const auto part = static_cast<double>(point.round - before);
    before = point.round;
    if (part == 0.0 || !std::isfinite(point.values[measure])) continue;
    sum += part * point.values[measure];
    rounds += part;
  }
  return rounds > 0.0 ? sum / rounds : std::nan("");
}

double milliseconds(const TrialResults& trial) {
  if (trial.rounds == 0) return std::nan("");
  double seconds = 0.0;
  for (const auto& [stage, spent] : trial.stages) seconds += is_of_rounds(stage) ? spent : 0.0;
  return 1000.0 * seconds / static_cast<double>(trial.rounds);
}

std::vector<FinalMeasure> study_measures(std::int64_t cutoff) {
  std::vector<FinalMeasure> measures;
  for (FinalMeasure& measure : final_measures(cutoff)) {
    const bool replaced = measure.slug == slug_of(Measure::kCertainShare) ||
                          measure.slug == slug_of(Measure::kMilliseconds) ||
                          measure.slug == slug_of(Measure::kCosine);
    if (!replaced) measures.push_back(std::move(measure));
  }
  const auto from_trial = [&](const char* slug, const char* title, int digits, Better better,
                              std::function<double(const TrialResults&)> value) {
    measures.push_back({slug, title, digits, better, std::move(value)});
  };
  from_trial("online-ndcg", "Online NDCG", 4, Better::kLarger,
             [](const TrialResults& trial) { return trial.last[Measure::kOnlineNdcg]; });
  from_trial("certain-share", "Certain share", 3, Better::kNeither,
             [](const TrialResults& trial) { return trial.last[Measure::kCertainShare]; });
  from_trial(
      "certain-share-mean", "Certain share, mean over rounds", 3, Better::kNeither,
      [](const TrialResults& trial) { return mean_over_curve(trial.curve, Measure::kCertainShare); });
  from_trial("blocks", "Blocks", 2, Better::kNeither,
             [](const TrialResults& trial) { return mean_over_curve(trial.curve, Measure::kBlocks); });
  from_trial("false-certain", "False certainty", 4, Better::kSmaller, [](const TrialResults& trial) {
    return whole_trial_share(trial.curve, Measure::kFalseCertain);
  });
  from_trial(
      "decisions-differ", "Decisions changed by exact widths", 4, Better::kNeither,
      [](const TrialResults& trial) { return whole_trial_share(trial.curve, Measure::kDecisionsDiffer); });
  from_trial("milliseconds", "Milliseconds per round", 3, Better::kNeither, milliseconds);
  from_trial("rounds-per-second", "Rounds per second", 0, Better::kNeither,
             [](const TrialResults& trial) { return 1000.0 / milliseconds(trial); });
  from_trial("posterior-bytes", "Posterior size in bytes", 0, Better::kNeither,
             [](const TrialResults& trial) { return trial.posterior_bytes; });
  from_trial("peak-memory-bytes", "Peak process memory in bytes", 0, Better::kNeither,
             [](const TrialResults& trial) { return static_cast<double>(trial.peak_memory_bytes); });
  return measures;
}

std::vector<StudyWidths> mean_widths(const TrialList& trials) {
  struct Sum {
    StudyWidths widths;
    double trials = 0.0;
  };
  std::map<std::int64_t, Sum> sums;
  for (const TrialResults* trial : trials) {
    for (const CurveEvaluation& point : trial->curve.points) {
      if (!std::isfinite(point.values[Measure::kWidthRatio])) continue;
      Sum& sum = sums[point.round];
      sum.widths.round = point.round;
      sum.widths.median += point.values[Measure::kWidthRatio];
      sum.widths.low += point.values[Measure::kWidthRatioLow];
      sum.widths.high += point.values[Measure::kWidthRatioHigh];
      ++sum.trials;
    }
  }
  std::vector<StudyWidths> means;
  for (auto& [round, sum] : sums) {
    for (double* value : {&sum.widths.median, &sum.widths.low, &sum.widths.high}) *value /= sum.trials;
    means.push_back(sum.widths);
  }
  return means;
}

std::vector<std::pair<std::string, double>> mean_stages(const TrialList& trials) {
  std::vector<std::pair<std::string, double>> means;
  for (const TrialResults* trial : trials) {
    for (const auto& [stage, seconds] : trial->stages) {
      auto found = std::find_if(means.begin(), means.end(),
                                [&name = stage](const auto& mean) { return mean.first == name; });
      if (found == means.end()) found = means.insert(means.end(), {stage, 0.0});
      found->second += 1000.0 * seconds / static_cast<double>(std::max<std::int64_t>(1, trial->rounds)) /
                       static_cast<double>(trials.size());
    }
  }
  return means;
}

class Analysis {
 public:
  Analysis(const ExperimentResults& results, StudyPlan plan) : results_(results) {
    study_.plan = std::move(plan);
    study_.run = results.run;
    study_.finished = results.finished;
    study_.expected = results.expected;
    for (const TrialResults& trial : results.trials) {
      if (trial.finished) study_.cutoff = trial.cutoff;
    }
    study_.measures = study_measures(study_.cutoff);
  }

  Study make() {
    for (const std::string& user : study_.run.users) {
      StudyUser of_user{user, {}};
      for (std::size_t cell = 0; cell < study_.plan.cells.size(); ++cell) {
        const TrialList trials = trials_of(user, study_.plan.cells[cell].ranker);
        if (!trials.empty()) of_user.rows.push_back(row(user, cell, trials));
      }
      correct(of_user);
      if (!of_user.rows.empty()) study_.users.push_back(std::move(of_user));
    }
    return std::move(study_);
  }

 private:
  TrialList trials_of(const std::string& user, const std::string& ranker) const {
    TrialList trials;
    for (const TrialResults& trial : results_.trials) {
      if (trial.finished && trial.identity.user == user && trial.identity.ranker == ranker)
        trials.push_back(&trial);
    }
    return trials;
  }

  StudyRow row(const std::string& user, std::size_t cell, const TrialList& trials) const {
    StudyRow row;
    row.cell = cell;
    row.trials = trials.size();
    row.parameters = trials.front()->parameters;
    row.widths = mean_widths(trials);
    row.stages = mean_stages(trials);
    const StudyCell& own = study_.plan.cells[cell];
    const StudyCell* exact = study_.plan.exact_of(own);
    const TrialList partners =
        exact == nullptr || exact == &own ? TrialList{} : trials_of(user, exact->ranker);
    for (const FinalMeasure& measure : study_.measures)
      row.values.push_back(value(measure, trials, partners));
    const auto log_time = [](const TrialResults& trial) { return std::log(milliseconds(trial)); };
    row.log_time = mean_interval(
        paired_differences(trials, partners, {"log-milliseconds", "", 3, Better::kNeither, log_time}));
    return row;
  }

  static StudyValue value(const FinalMeasure& measure, const TrialList& trials, const TrialList& partners) {
    StudyValue value;
    value.estimate = mean_interval(by_fold(trials, measure.value));
    const FoldedValues differences = paired_differences(trials, partners, measure);
    if (differences.empty()) return value;
    const NestedValues nested = nested_differences(trials, partners, measure);
    value.compared = true;
    value.difference = paired_test(differences, measure.key());
    value.t_holm = value.difference.t_p;
    value.bootstrap = hierarchical_bootstrap(nested, measure.key());
    value.over_queries = over_queries(nested);
    value.deviation = deviation_of(independent_values(differences));
    return value;
  }

  /// Holm's correction; each measure with a better direction is its own family of tests.
  void correct(StudyUser& user) const {
    for (std::size_t measure = 0; measure < study_.measures.size(); ++measure) {
      if (study_.measures[measure].better == Better::kNeither) continue;
      std::vector<double> p_values;
      for (const StudyRow& row : user.rows) {
        if (row.values[measure].compared) p_values.push_back(row.values[measure].difference.t_p);
      }
      const std::vector<double> adjusted = holm_adjusted(p_values);
      std::size_t at = 0;
      for (StudyRow& row : user.rows) {
        if (row.values[measure].compared) row.values[measure].t_holm = adjusted[at++];
      }
    }
  }

  const ExperimentResults& results_;
  Study study_;
};

}  // namespace

double whole_trial_share(const RecordedCurve& curve, Measure measure) {
  double hits = 0.0;
  double of = 0.0;
  for (const CurveEvaluation& point : curve.points) {
    const double share = point.values[measure];
    const double count = measure == Measure::kFalseCertain ? point.certain_orders : point.decisions;
    if (!std::isfinite(share)) continue;
    hits += share * count;
    of += count;
  }
  return of > 0.0 ? hits / of : std::nan("");
}

const StudyValue* Study::value(const StudyRow& row, const std::string& slug) const {
  for (std::size_t i = 0; i < measures.size(); ++i) {
    if (measures[i].slug == slug) return &row.values[i];
  }
  return nullptr;
}

Study analyse_study(const ExperimentResults& results, StudyPlan plan) {
  return Analysis(results, std::move(plan)).make();
}

}  // namespace olrank
