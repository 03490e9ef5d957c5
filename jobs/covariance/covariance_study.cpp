#include "jobs/covariance/covariance_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/runtime/log.h"
#include "core/settings/setting_sources.h"
#include "core/text/message_text.h"
#include "core/throw_error.h"
#include "report/experiment_results.h"
#include "report/outputs.h"
#include "report/study.h"

namespace olrank {
namespace {

constexpr std::string_view kEnsemble = "ensemble-";
constexpr std::string_view kInducingWith = "inducing-";
constexpr std::string_view kStructures = "study.structures";

/// "500" of "inducing-500"; empty for any other structure.
std::string_view budget_text(std::string_view structure) {
  return structure.starts_with(kInducingWith) ? structure.substr(kInducingWith.size()) : std::string_view();
}

[[noreturn]] void refuse_structure(const std::string& structure) {
  if (const auto dropped = dropped_sentence(structure))
    throw_error<InvalidArgument>("{}: {}", kStructures, *dropped);
  std::vector<std::string> known;
  known.reserve(std::size(EnumNames<Covariance>::values) + 1);
  for (const auto& [value, name] : EnumNames<Covariance>::values) known.emplace_back(name);
  const std::string covariances = joined(known, ", ");
  known.emplace_back("ensemble-2");
  throw_error<InvalidArgument>(
      "{}: '{}' must be {}, inducing-N with N as the budget, or ensemble-N with N of at least 2. {}",
      kStructures, structure, covariances, did_you_mean(structure, known));
}

/// Gives the ranker the covariance of a structure: "diagonal", or with a budget "inducing-500".
void set_covariance(PosteriorSettings& posterior, const std::string& structure) {
  const std::string_view budget = budget_text(structure);
  const std::string name = budget.empty() ? structure : std::string(name_of(Covariance::kInducing));
  const auto covariance = value_named<Covariance>(name);
  if (!covariance) refuse_structure(structure);
  posterior.covariance = *covariance;
  if (budget.empty()) return;
  assign_setting_text(PosteriorSettings::schema(), &posterior, "budget", budget,
                      fmt::format("{}: '{}'", kStructures, structure));
}

void check_structure(const std::string& structure) {
  PosteriorSettings posterior;
  if (members_of(structure) == 0) set_covariance(posterior, structure);
}

template <class T>
void check_axis(const std::vector<T>& values, std::string_view key) {
  if (values.empty()) throw_error<InvalidArgument>("study.{} is empty; it needs at least one value.", key);
  if (std::set<T>(values.begin(), values.end()).size() != values.size())
    throw_error<InvalidArgument>("study.{} contains a duplicate.", key);
}

void check_axes(const StudySettings& study) {
  check_axis(study.structures, "structures");
  check_axis(study.widths, "widths");
  check_axis(study.depths, "depths");
  check_axis(study.noise_variances, "noise_variances");
  for (const std::string& structure : study.structures) check_structure(structure);
  const auto& structures = study.structures;
  if (std::find(structures.begin(), structures.end(), kExactStructure) == structures.end()) {
    throw InvalidArgument(
        "study.structures must include 'full', which the other structures are compared with.");
  }
}

StudyRanker covariance_ranker(const std::string& structure, const StudySettings& study,
                              const StudyBase& base, std::int64_t width, std::int64_t depth) {
  StudyRanker ranker{{{}, structure, width, depth, {}, {}, {}}, base.network};
  PosteriorSettings& posterior = ranker.settings.posterior;
  set_covariance(posterior, structure);
  const bool is_exact = posterior.covariance == Covariance::kFull;
  posterior.shadow = study.exact_widths && !is_exact ? ShadowCovariance::kFull : ShadowCovariance::kNone;
  if (study.exact_training && is_exact) ranker.settings.trainer.retrain = Retrain::kEveryRound;
  if (posterior.covariance == Covariance::kInducing) ranker.cell.budget = posterior.budget;
  if (has_alpha(ranker.cell)) ranker.cell.alpha = ranker.settings.explore.alpha;
  return ranker;
}

StudyRanker ensemble_ranker(const std::string& structure, const StudyBase& base, std::int64_t width,
                            std::int64_t depth, double noise_variance) {
  StudyRanker ranker{{{}, structure, width, depth, noise_variance, {}, {}}, base.ensemble};
  ranker.settings.posterior.members = members_of(structure);
  ranker.settings.posterior.noise_variance = noise_variance;
  return ranker;
}

void name(StudyRanker& ranker) {
  StudyCell& cell = ranker.cell;
  cell.ranker = fmt::format("{}-m{}-L{}", cell.structure, cell.width, cell.depth);
  if (cell.noise_variance) cell.ranker += fmt::format("-nu{:g}", *cell.noise_variance);
  ranker.settings.name = cell.ranker;
  ranker.settings.network.width = cell.width;
  ranker.settings.network.depth = cell.depth;
}

namespace fs = std::filesystem;

bool is_exact(const StudyRanker& ranker) {
  return ranker.cell.structure == kExactStructure;
}

/// The number of certain orders over all trials of a ranker, and the fraction of them that is wrong.
CalibrationPoint point_of(const ExperimentResults& results, const StudyRanker& ranker) {
  CalibrationPoint point{ranker.settings.explore.alpha, 0.0, 0.0};
  double wrong = 0.0;
  for (const TrialResults& trial : results.trials) {
    if (trial.identity.ranker != ranker.settings.name) continue;
    for (const CurveEvaluation& at : trial.curve.points) {
      const double share = at.values[Measure::kFalseCertain];
      if (!std::isfinite(share)) continue;
      wrong += share * at.certain_orders;
      point.certain_orders += at.certain_orders;
    }
  }
  point.false_certain = wrong / point.certain_orders;
  return point;
}

/// The values of α that are tried, rising.
constexpr double kAlphas[] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0};

/// Rounded to four digits, for a configuration file.
double rounded(double alpha) {
  return std::strtod(fmt::format("{:.4g}", alpha).c_str(), nullptr);
}

/// The experiment of the calibration: `full` at its own α, and every other structure with an α at each
/// value tried. It runs on the validation set, so it uses neither the study's queries nor its evaluation.
Configuration calibration_of(Configuration configuration, const std::vector<StudyRanker>& rankers) {
  const std::int64_t rounds = configuration.study->calibration_rounds;
  configuration.study.reset();
  configuration.data.evaluate = EvaluationPart::kVali;
  configuration.protocol.rounds = configuration.protocol.eval_every = rounds;
  configuration.run.out = (fs::path(configuration.run.out) / "calibration").string();
  configuration.rankers.clear();
  for (StudyRanker ranker : rankers) {
    if (!has_alpha(ranker.cell)) continue;
    ranker.settings.posterior.shadow = ShadowCovariance::kNone;
    if (is_exact(ranker)) {
      configuration.rankers.push_back(ranker.settings);
      continue;
    }
    for (const double alpha : kAlphas) configuration.rankers.push_back(with_alpha(ranker, alpha).settings);
  }
  return configuration;
}

/// The calibration of each ranker with an α, by the results of that experiment.
std::vector<Calibration> calibrations_in(const ExperimentResults& results,
                                         const std::vector<StudyRanker>& rankers) {
  std::vector<Calibration> found;
  for (const StudyRanker& ranker : rankers) {
    if (!has_alpha(ranker.cell)) continue;
    const auto full = std::find_if(rankers.begin(), rankers.end(), [&](const StudyRanker& other) {
      return is_exact(other) && other.cell.width == ranker.cell.width &&
             other.cell.depth == ranker.cell.depth;
    });
    const CalibrationPoint exact = point_of(results, *full);
    Calibration calibration{
        ranker.cell.ranker, exact.false_certain, ranker.settings.explore.alpha, true, {}};
    if (is_exact(ranker)) {
      calibration.points = {exact};
    } else {
      for (const double alpha : kAlphas)
        calibration.points.push_back(point_of(results, with_alpha(ranker, alpha)));
      match_alpha(calibration);
      calibration.alpha = rounded(calibration.alpha);
    }
    found.push_back(std::move(calibration));
  }
  return found;
}

/// One study: the calibration if α is matched, the trials, and their analysis.
class CovarianceStudy {
 public:
  /// The configuration's rankers are the network and, if the study has ensembles, their base.
  CovarianceStudy(const Configuration& configuration, const ExperimentRequest& request, std::string command)
      : configuration_(configuration),
        study_(*configuration.study),
        request_(request),
        command_(std::move(command)),
        rankers_(study_rankers(study_, {configuration.rankers.front(), configuration.rankers.back()})) {
    plan_.matched_alpha = study_.alpha == StudyAlpha::kMatched;
    if (!plan_.matched_alpha) return;
    if (!has_alphas()) {
      throw InvalidArgument(
          "--alpha matched requires a covariance other than full to match: add diagonal to --structures, "
          "or use --study-alpha given.");
    }
    plan_.calibration_rounds = study_.calibration_rounds;
  }

  /// Whether a structure other than full has an α.
  bool has_alphas() const {
    return std::any_of(rankers_.begin(), rankers_.end(), [](const StudyRanker& ranker) {
      return ranker.cell.structure != kExactStructure && has_alpha(ranker.cell);
    });
  }

  std::string dry_run(const OutputForm& form) const {
    const Configuration whole = experiment_configuration();
    const ExperimentPlan plan = make_plan(whole, request_);
    std::vector<DryRunCount> extra_counts;
    if (plan_.matched_alpha) {
      const Configuration calibration = calibration_of(configuration_, rankers_);
      const ExperimentPlan of_alpha = make_plan(calibration, calibration_request());
      extra_counts.push_back(
          {"calibration_trials", "additional trials of the calibration.", std::ssize(trials_of(of_alpha))});
    }
    return dry_run_output(whole, plan, form, extra_counts);
  }

  int run(const OutputForm& form, const TextSink& print) {
    const OutputFolder folder(configuration_.run.out, FolderKind::kExperiment, request_.shard);
    if (plan_.matched_alpha) {
      prepare_calibration(folder);
      const int calibrated = calibrate();
      if (calibrated != 0) return calibrated;
      if (plan_.calibrations.empty()) return 0;  // other shards are not finished yet
    }
    const int code = run_trials(folder);
    if (code > 1) return code;
    report(form, print);
    return code;
  }

 private:
  /// Checks memory and existing results before the calibration, and makes the folder olrank's before
  /// anything is written below it. With --resume, existing results can be checked only once α is known.
  void prepare_calibration(const OutputFolder& folder) const {
    const Configuration whole = experiment_configuration();
    const ExperimentPlan plan = make_plan(whole, request_);
    if (request_.existing != Existing::kResume) {
      check_memory(whole, plan);
      refuse_existing(plan, folder);
      check_existing(plan);
    }
    if (!folder.has_manifest()) write_manifest(whole, plan, folder, command_);
  }

  ExperimentRequest calibration_request() const {
    ExperimentRequest request = request_;
    request.ask_validation = true;
    request.data = {};
    return request;
  }

  Configuration experiment_configuration() const {
    Configuration whole = configuration_;
    whole.study.reset();
    whole.rankers = settings_of(rankers_);
    return whole;
  }

  /// Runs the calibration and determines each α; plan_.calibrations stays empty while other shards are
  /// missing.
  int calibrate() {
    const Configuration settings = calibration_of(configuration_, rankers_);
    ExperimentPlan plan = make_plan(settings, calibration_request());
    check_memory(settings, plan);
    const OutputFolder folder(plan.out, FolderKind::kExperiment, request_.shard);
    settle_existing(plan, folder);
    log_info("Calibrating α: {} of {} in {}", counted(trials_of(plan).size(), "trial"),
             counted(plan.trial.rounds, "round"), plan.out.string());
    write_manifest(settings, plan, folder, command_);
    if (const int code = run_and_summarise(plan); code != 0) return code;
    const ExperimentResults results = read_experiment(plan.out);
    if (results.finished != results.expected) {
      log_info(
          "Shard {} of {} has finished its calibration. When the trials of all shards are in {}, run this "
          "command again with --resume for the study.",
          plan.shard.index, plan.shard.count, plan.out.string());
      return 0;
    }
    plan_.calibrations = calibrations_in(results, rankers_);
    for (const Calibration& found : plan_.calibrations) {
      for (StudyRanker& ranker : rankers_) {
        if (ranker.cell.ranker != found.ranker) continue;
        ranker.cell.alpha = ranker.settings.explore.alpha = found.alpha;
      }
      if (found.bracketed) continue;
      log_warning(
          "{}: No α tried matches the error rate of full's certain orders ({:.4f}); using the nearest, α = "
          "{}. More --study-calibration-rounds may find one.",
          found.ranker, found.target, found.alpha);
    }
    return 0;
  }

  int run_trials(const OutputFolder& folder) const {
    const Configuration whole = experiment_configuration();
    const ExperimentPlan plan = make_plan(whole, request_);
    check_memory(whole, plan);  // before --force removes anything
    settle_existing(plan, folder);
    log_info("Running the study: {}, {} of {} in {}, protocol {}", counted(rankers_.size(), "ranker"),
             counted(trials_of(plan).size(), "trial"), counted(plan.trial.rounds, "round"),
             plan.out.string(), name_of(configuration_.protocol.name));
    write_manifest(whole, plan, folder, command_);
    write_configuration(whole, plan.out / "config.toml");
    write_configuration(configuration_, plan.out / "study.toml");
    return run_and_summarise(plan);
  }

  void report(const OutputForm& form, const TextSink& print) const {
    const fs::path out = configuration_.run.out;
    StudyPlan plan = plan_;
    for (const StudyRanker& ranker : rankers_) plan.cells.push_back(ranker.cell);
    const Study study = analyse_study(read_experiment(out), std::move(plan));
    const std::string json = study_json(study);
    write_file_atomically(out / "study.csv", study_csv(study));
    write_file_atomically(out / "study.json", json);
    write_report_page(out);
    print(form.json ? json : study_text(study, form.columns));
    if (study.finished < study.expected)
      log_info("{} of {} trials have finished.", study.finished, study.expected);
    log_info("Study: {}, report: {}", (out / "study.json").string(), (out / "report.html").string());
  }

  const Configuration& configuration_;
  const StudySettings& study_;
  ExperimentRequest request_;
  std::string command_;
  std::vector<StudyRanker> rankers_;
  StudyPlan plan_;  // its cells are the rankers'
};

/// The configuration with the device and the trials at once that its rankers have.
Configuration with_settled_device(Configuration configuration, ExperimentRequest& request) {
  Configuration experiment = configuration;
  experiment.rankers = settings_of(
      study_rankers(*configuration.study, {configuration.rankers.front(), configuration.rankers.back()}));
  experiment.study.reset();
  settle_device(experiment, request);
  configuration.run = experiment.run;
  return configuration;
}

}  // namespace

std::int64_t members_of(const std::string& structure) {
  if (structure.rfind(kEnsemble, 0) != 0) return 0;
  std::int64_t members = 0;
  const char* end = structure.data() + structure.size();
  const auto [stopped, error] = std::from_chars(structure.data() + kEnsemble.size(), end, members);
  return error == std::errc() && stopped == end && members >= 2 ? members : 0;
}

bool has_ensembles(const StudySettings& study) {
  return std::any_of(study.structures.begin(), study.structures.end(),
                     [](const std::string& structure) { return members_of(structure) > 0; });
}

bool has_alpha(const StudyCell& cell) {
  return members_of(cell.structure) == 0 && cell.structure != name_of(Covariance::kNone);
}

std::vector<StudyRanker> study_rankers(const StudySettings& study, const StudyBase& base) {
  check_axes(study);
  std::vector<StudyRanker> rankers;
  for (const std::int64_t depth : study.depths) {
    for (const std::int64_t width : study.widths) {
      for (const std::string& structure : study.structures) {
        if (members_of(structure) == 0) {
          rankers.push_back(covariance_ranker(structure, study, base, width, depth));
          continue;
        }
        for (const double noise : study.noise_variances)
          rankers.push_back(ensemble_ranker(structure, base, width, depth, noise));
      }
    }
  }
  for (StudyRanker& ranker : rankers) name(ranker);
  return rankers;
}

StudyRanker with_alpha(StudyRanker ranker, double alpha) {
  ranker.cell.alpha = alpha;
  ranker.settings.explore.alpha = alpha;
  ranker.cell.ranker += fmt::format("+alpha={:g}", alpha);
  ranker.settings.name = ranker.cell.ranker;
  return ranker;
}

std::string covariance_study_dry_run(const Configuration& configuration, ExperimentRequest request,
                                     const OutputForm& form) {
  const Configuration there = with_settled_device(configuration, request);
  return CovarianceStudy(there, request, {}).dry_run(form);
}

int run_covariance_study(const Configuration& configuration, ExperimentRequest request,
                         const std::string& command, const OutputForm& form, const TextSink& print) {
  const Configuration there = with_settled_device(configuration, request);
  return CovarianceStudy(there, request, command).run(form, print);
}

}  // namespace olrank
