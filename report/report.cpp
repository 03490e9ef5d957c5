#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "core/text/message_text.h"
#include "core/throw_error.h"

namespace olrank {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// The last component of each folder's path, numbered if several are equal.
std::vector<std::string> labels_of(const std::vector<ExperimentResults>& experiments) {
  std::vector<std::string> labels;
  for (const ExperimentResults& experiment : experiments) {
    std::filesystem::path path = std::filesystem::absolute(experiment.folder).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    std::string label = path.filename().string();
    const auto same = std::count(labels.begin(), labels.end(), label);
    if (same > 0) label += fmt::format(" #{}", same + 1);
    labels.push_back(std::move(label));
  }
  return labels;
}

bool same_data(const RunDescription& a, const RunDescription& b) {
  return a.data == b.data &&
         std::all_of(a.fingerprints.begin(), a.fingerprints.end(), [&](const auto& part) {
           const auto other = b.fingerprints.find(part.first);
           return other == b.fingerprints.end() || other->second == part.second;
         });
}

void warn_of_differences(const Report& report, std::size_t other, std::vector<std::string>& warnings) {
  const RunDescription& first = report.experiments[0].run;
  const RunDescription& second = report.experiments[other].run;
  std::set<std::string> keys;
  for (const auto& [key, value] : first.settings) keys.insert(key);
  for (const auto& [key, value] : second.settings) keys.insert(key);
  for (const std::string& key : keys) {
    const std::string a = first.setting(key, "unset");
    const std::string b = second.setting(key, "unset");
    if (a == b) continue;
    warnings.push_back(fmt::format("{} and {} differ in {}: '{}' and '{}'.", report.labels[0],
                                   report.labels[other], key, a, b));
  }
  for (const auto& [fold, fingerprint] : first.fingerprints) {
    const auto found = second.fingerprints.find(fold);
    if (found == second.fingerprints.end() || found->second == fingerprint) continue;
    warnings.push_back(fmt::format("{} and {} have different data in fold {}.", report.labels[0],
                                   report.labels[other], fold));
  }
}

const RankerDescription* description_of(const RunDescription& run, const std::string& name) {
  for (const RankerDescription& ranker : run.rankers) {
    if (ranker.name == name) return &ranker;
  }
  return nullptr;
}

/// Different data paths do not make different rankers; the report keeps data sets separate anyway.
Settings without_data_paths(const Settings& settings) {
  Settings kept;
  for (const auto& entry : settings) {
    const bool path = entry.first == "data.source" || entry.first == "data.train" ||
                      entry.first == "data.vali" || entry.first == "data.test";
    if (!path) kept.push_back(entry);
  }
  return kept;
}

/// Whether all experiments that have a ranker of this name use the same settings.
bool is_same_everywhere(const Report& report, const std::string& name) {
  const RunDescription* previous = nullptr;
  for (const ExperimentResults& experiment : report.experiments) {
    const RankerDescription* description = description_of(experiment.run, name);
    if (description == nullptr) continue;
    if (previous != nullptr &&
        (description_of(*previous, name)->settings != description->settings ||
         without_data_paths(previous->settings) != without_data_paths(experiment.run.settings))) {
      return false;
    }
    previous = &experiment.run;
  }
  return true;
}

using FoldAndSeed = std::pair<std::int64_t, std::int64_t>;
using TrialCurves = std::map<FoldAndSeed, std::map<std::int64_t, double>>;  // then by round

TrialCurves curves_of(const TrialList& trials, Measure measure) {
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

std::vector<Curve> each_of(const TrialCurves& curves) {
  std::vector<Curve> all;
  for (const auto& [place, curve] : curves) all.emplace_back(curve.begin(), curve.end());
  return all;
}

/// By round, then by fold.
using ValuesByRound = std::map<std::int64_t, std::map<std::int64_t, std::vector<double>>>;

MeanCurve mean_curve(const ValuesByRound& rounds) {
  MeanCurve curve;
  for (const auto& [round, folds] : rounds) {
    FoldedValues values;
    for (const auto& [fold, of_fold] : folds) values.push_back(of_fold);
    curve.push_back({round, mean_interval(values)});
  }
  return curve;
}

class Comparison {
 public:
  explicit Comparison(std::vector<ExperimentResults> experiments) {
    report_.experiments = std::move(experiments);
    report_.labels = labels_of(report_.experiments);
  }

  Report join(const std::string& baseline) {
    for (std::size_t i = 0; i < report_.experiments.size(); ++i) {
      const std::vector<std::string>& damage = report_.experiments[i].warnings;
      report_.warnings.insert(report_.warnings.end(), damage.begin(), damage.end());
      if (i > 0) warn_of_differences(report_, i, report_.warnings);
    }
    name_rankers();
    find_data();
    for (std::size_t i = 0; i < report_.experiments.size(); ++i) place_trials(i);
    for (DataResults& data : report_.data) {
      for (UserResults& user : data.users) finish(user);
    }
    report_.baseline = baseline.empty() ? exact_structure() : ranker_named(baseline);
    return std::move(report_);
  }

 private:
  void name_rankers() {
    for (std::size_t i = 0; i < report_.experiments.size(); ++i) {
      const ExperimentResults& experiment = report_.experiments[i];
      for (const RankerDescription& ranker : experiment.run.rankers)
        ranker_number(i, ranker.name, ranker.summary, ranker.skyline);
      // A merged folder may hold trials that its manifest does not list.
      for (const TrialResults& trial : experiment.trials)
        ranker_number(i, trial.identity.ranker, "", false);
    }
  }

  std::size_t ranker_number(std::size_t experiment, const std::string& name, const std::string& summary,
                            bool skyline) {
    const auto key = std::make_pair(experiment, name);
    if (const auto known = numbers_.find(key); known != numbers_.end()) return known->second;
    const std::string shown =
        is_same_everywhere(report_, name) ? name : fmt::format("{} ({})", name, report_.labels[experiment]);
    std::size_t number = 0;
    while (number < report_.rankers.size() && report_.rankers[number].name != shown) ++number;
    if (number == report_.rankers.size()) report_.rankers.push_back({shown, summary, skyline});
    numbers_[key] = number;
    return number;
  }

  /// Finds it by its name in the report, or by its name in a folder if only one ranker has it.
  std::size_t ranker_named(const std::string& name) const {
    std::vector<std::string> shown;
    for (const ReportedRanker& ranker : report_.rankers) shown.push_back(ranker.name);
    const auto exact = std::find(shown.begin(), shown.end(), name);
    if (exact != shown.end()) return static_cast<std::size_t>(exact - shown.begin());
    std::set<std::size_t> found;
    for (const auto& [key, number] : numbers_) {
      if (key.second == name) found.insert(number);
    }
    if (found.size() == 1) return *found.begin();
    throw_error<InvalidArgument>(
        "--baseline {}", found.empty()
                             ? must_be_one_of(name, shown)
                             : fmt::format("'{}' is the name of several rankers; choose one of {}.", name,
                                           joined(shown, " or ")));
  }

  std::optional<std::size_t> exact_structure() const {
    std::set<std::size_t> exact;
    for (std::size_t i = 0; i < report_.experiments.size(); ++i) {
      const std::optional<StudyPlan>& study = report_.experiments[i].study;
      if (!study) return std::nullopt;
      for (const StudyCell& cell : study->cells) {
        const auto number = numbers_.find({i, cell.ranker});
        if (cell.structure == kExactStructure && number != numbers_.end()) exact.insert(number->second);
      }
    }
    return exact.size() == 1 ? std::optional(*exact.begin()) : std::nullopt;
  }

  void find_data() {
    std::vector<std::size_t> firsts;
    for (std::size_t i = 0; i < report_.experiments.size(); ++i) {
      const RunDescription& run = report_.experiments[i].run;
      std::size_t number = 0;
      while (number < firsts.size() && !same_data(report_.experiments[firsts[number]].run, run)) ++number;
      if (number == firsts.size()) {
        firsts.push_back(i);
        report_.data.push_back({run.data, 10, {}});
        const auto named = [&](const DataResults& data) { return data.data == run.data; };
        if (std::count_if(report_.data.begin(), report_.data.end(), named) > 1)
          report_.data.back().data += fmt::format(" ({})", report_.labels[i]);
      }
      data_of_.push_back(number);
      for (const std::string& user : run.users) user_of(report_.data[number], user);
    }
  }

  static UserResults& user_of(DataResults& data, const std::string& name) {
    for (UserResults& user : data.users) {
      if (user.user == name) return user;
    }
    data.users.push_back({name, {}});
    return data.users.back();
  }

  void place_trials(std::size_t experiment) {
    for (const TrialResults& trial : report_.experiments[experiment].trials) {
      const TrialIdentity& identity = trial.identity;
      const std::size_t ranker = numbers_.at({experiment, identity.ranker});
      DataResults& data = report_.data[data_of_[experiment]];
      const auto [place, is_new] = places_.try_emplace(
          {data_of_[experiment], ranker, identity.user, identity.fold, identity.seed}, experiment);
      if (!is_new) {
        const std::string& first = report_.labels[place->second];
        report_.warnings.push_back(fmt::format("{} of {} is also in {}; only the trial in {} counts.",
                                               identity.path().string(), report_.labels[experiment], first,
                                               first));
        continue;
      }
      if (trial.finished)
        data.cutoff = trial.cutoff;
      else if (trial.curve.cutoff > 0)
        data.cutoff = trial.curve.cutoff;
      UserResults& user = user_of(data, identity.user);
      auto found = std::find_if(user.rankers.begin(), user.rankers.end(),
                                [&](const RankerTrials& trials) { return trials.ranker == ranker; });
      if (found == user.rankers.end()) {
        user.rankers.push_back({ranker, report_.rankers[ranker].skyline, {}, {}});
        found = user.rankers.end() - 1;
      }
      found->trials.push_back(&trial);
    }
  }

  static void finish(UserResults& user) {
    std::sort(user.rankers.begin(), user.rankers.end(),
              [](const RankerTrials& a, const RankerTrials& b) { return a.ranker < b.ranker; });
    for (RankerTrials& ranker : user.rankers) {
      for (const Measure measure : measures_in(ranker.trials)) {
        MeanCurve curve = curve_of(ranker.trials, measure);
        if (!curve.empty()) ranker.curves.emplace(measure, std::move(curve));
      }
    }
  }

  static std::set<Measure> measures_in(const TrialList& trials) {
    std::set<Measure> measures;
    for (std::size_t i = 0; i < kMeasures; ++i) measures.insert(static_cast<Measure>(i));
    for (const TrialResults* trial : trials) {
      for (const CurveEvaluation& point : trial->curve.points) {
        const std::vector<Measure> added = point.values.added();
        measures.insert(added.begin(), added.end());
      }
    }
    return measures;
  }

  static MeanCurve curve_of(const TrialList& trials, Measure measure) {
    ValuesByRound values;
    for (const TrialResults* trial : trials) {
      for (const CurveEvaluation& point : trial->curve.points) {
        const double value = point.values[measure];
        if (std::isfinite(value)) values[point.round][trial->identity.fold].push_back(value);
      }
    }
    return mean_curve(values);
  }

  Report report_;
  std::map<std::pair<std::size_t, std::string>, std::size_t> numbers_;  // by experiment and name
  std::vector<std::size_t> data_of_;                                    // by experiment
  std::map<std::tuple<std::size_t, std::size_t, std::string, std::int64_t, std::int64_t>, std::size_t>
      places_;  // the first experiment that has the trial
};

}  // namespace

std::string ReportedRanker::details() const {
  if (summary.rfind(name, 0) != 0) return summary;
  const std::string rest = summary.substr(name.size());
  if (rest.empty()) return "";
  return rest.rfind(", ", 0) == 0 ? rest.substr(2) : summary;
}

const MeanCurve& RankerTrials::curve(Measure measure) const {
  static const MeanCurve none;
  const auto found = curves.find(measure);
  return found == curves.end() ? none : found->second;
}

std::vector<NamedMetric> UserResults::metrics(std::int64_t cutoff) const {
  std::set<NamedMetric> found;
  for (const RankerTrials& ranker : rankers) {
    for (const auto& [measure, curve] : ranker.curves) {
      if (const auto metric = metric_of(measure)) found.insert(*metric);
    }
  }
  found.erase({MetricKind::kNdcg, cutoff});
  return {found.begin(), found.end()};
}

Report compare_experiments(std::vector<ExperimentResults> experiments, const std::string& baseline) {
  return Comparison(std::move(experiments)).join(baseline);
}

std::string short_name(const Report& report, const DataResults& data) {
  const auto last_part = [](std::string name) {
    while (name.size() > 1 && name.back() == '/') name.pop_back();
    const std::size_t slash = name.rfind('/');
    // The settings of generated data may hold a slash.
    return slash == std::string::npos || name.rfind("synth:", 0) == 0 ? name : name.substr(slash + 1);
  };
  const std::string name = last_part(data.data);
  const auto same = std::count_if(report.data.begin(), report.data.end(),
                                  [&](const DataResults& other) { return last_part(other.data) == name; });
  return same > 1 ? data.data : name;
}

FoldedValues by_fold(const TrialList& trials, const std::function<double(const TrialResults&)>& value) {
  std::map<std::int64_t, std::vector<double>> folds;
  for (const TrialResults* trial : trials) {
    const double result = value(*trial);
    if (std::isfinite(result)) folds[trial->identity.fold].push_back(result);
  }
  FoldedValues folded;
  for (const auto& [fold, values] : folds) folded.push_back(values);
  return folded;
}

std::vector<Curve> trial_curves(const TrialList& trials, Measure measure) {
  return each_of(curves_of(trials, measure));
}

DifferenceCurves difference_curves(const TrialList& a, const TrialList& b, Measure measure) {
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
  ValuesByRound rounds;
  for (const auto& [place, curve] : differences) {
    for (const auto& [round, value] : curve) rounds[round][place.first].push_back(value);
  }
  DifferenceCurves result;
  result.mean = mean_curve(rounds);
  result.trials = each_of(differences);
  return result;
}

std::size_t most_trials(const MeanCurve& curve) {
  std::size_t most = 0;
  for (const RoundEstimate& point : curve) most = std::max(most, point.estimate.values);
  return most;
}

}  // namespace olrank
