#include "report/study.h"

#include <algorithm>
#include <cmath>
#include <map>

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

/// The measures are those of final tables, of which some come later, and what tells structures apart.
std::vector<FinalMeasure> study_measures(std::int64_t cutoff) {
  std::vector<FinalMeasure> measures = final_measures(cutoff);
  std::erase_if(measures, [](const FinalMeasure& measure) {
    return measure.slug == slug_of(Measure::kCertainShare) ||
           measure.slug == slug_of(Measure::kFalseCertain) ||
           measure.slug == slug_of(Measure::kMilliseconds) || measure.slug == slug_of(Measure::kCosine);
  });
  const auto add = [&](const std::string& slug, Better better,
                       std::function<double(const TrialResults&)> value) {
    measures.push_back({slug, slug, 4, better, std::move(value)});
  };
  const auto last = [&](Measure measure, Better better) {
    add(slug_of(measure), better, [=](const TrialResults& trial) { return final_value(trial, measure); });
  };
  const auto mean = [&](const char* slug, Measure measure) {
    add(slug, Better::kNeither,
        [=](const TrialResults& trial) { return mean_over_curve(trial.curve, measure); });
  };
  last(Measure::kOnlineNdcg, Better::kLarger);
  last(Measure::kCertainShare, Better::kNeither);
  mean("certain-share-mean", Measure::kCertainShare);
  mean("blocks", Measure::kBlocks);
  last(Measure::kFalseCertain, Better::kSmaller);
  last(Measure::kDecisionsDiffer, Better::kNeither);
  last(Measure::kMilliseconds, Better::kNeither);
  add("rounds-per-second", Better::kNeither,
      [](const TrialResults& trial) { return 1000.0 / trial.last[Measure::kMilliseconds]; });
  add("posterior-bytes", Better::kNeither, &TrialResults::posterior_bytes);
  add("peak-memory-bytes", Better::kNeither, &TrialResults::peak_memory_bytes);
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
  Analysis(const ExperimentResults& results, StudyPlan plan)
      : results_(results),
        study_{.plan = std::move(plan),
               .run = results.run,
               .finished = results.finished,
               .expected = results.expected} {
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
      correct_by_measure(of_user);
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
    const auto log_time = [](const TrialResults& trial) {
      return std::log(trial.last[Measure::kMilliseconds]);
    };
    row.log_time = mean_interval(
        paired_differences(trials, partners, {"log-milliseconds", "", 3, Better::kNeither, log_time}));
    return row;
  }

  static StudyValue value(const FinalMeasure& measure, const TrialList& trials, const TrialList& partners) {
    StudyValue value;
    value.estimate = mean_interval(by_fold(trials, measure.value));
    FoldedValues differences = paired_differences(trials, partners, measure);
    if (differences.empty()) return value;
    value.minus_exact = compared(0, 0, std::move(differences), measure.slug);
    value.minus_exact->t_holm = value.minus_exact->test.t_p;
    return value;
  }

  /// Each measure with a better direction is its own family of tests.
  void correct_by_measure(StudyUser& user) const {
    for (std::size_t measure = 0; measure < study_.measures.size(); ++measure) {
      if (study_.measures[measure].better == Better::kNeither) continue;
      std::vector<PairedComparison*> family;
      for (StudyRow& row : user.rows) {
        if (row.values[measure].minus_exact) family.push_back(&*row.values[measure].minus_exact);
      }
      correct(family);
    }
  }

  const ExperimentResults& results_;
  Study study_;
};

}  // namespace

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
