#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "apps/bench/alpha_calibration.h"
#include "apps/bench/commands.h"
#include "apps/bench/study_rankers.h"
#include "apps/configuration.h"
#include "apps/dry_run.h"
#include "apps/experiment_flags.h"
#include "apps/experiment_run.h"
#include "apps/experiment_setup.h"
#include "apps/setting_flags.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/standard_output.h"
#include "core/runtime/log.h"
#include "core/settings/toml_document.h"
#include "core/text/counted.h"
#include "report/exports.h"
#include "report/study_text.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;

std::vector<RankerSettings> settings_of(const std::vector<StudyRanker>& rankers) {
  std::vector<RankerSettings> settings;
  settings.reserve(rankers.size());
  for (const StudyRanker& ranker : rankers) settings.push_back(ranker.settings);
  return settings;
}

/// A study is of networks: covariances and ensembles.
bool is_network_with(const RankerKindRow& row, OrderEvidence evidence) {
  return row.forms == ModelForms::kNetwork && row.evidence == evidence;
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

  void dry_run(const OutputFlags& output) const {
    const Configuration whole = experiment_configuration();
    const ExperimentPlan plan = make_plan(whole, request_);
    std::vector<DryRunCount> extra_counts;
    if (plan_.matched_alpha) {
      const AlphaCalibration calibration(configuration_, study_, rankers_);
      const ExperimentPlan of_alpha = make_plan(calibration.configuration(), calibration_request());
      extra_counts.push_back(
          {"calibration_trials", "additional trials of the calibration.", std::ssize(trials_of(of_alpha))});
    }
    print_dry_run(whole, plan, output, extra_counts);
  }

  int run(const OutputFlags& output) {
    const OutputFolder folder(configuration_.run.out, FolderKind::kExperiment, request_.shard);
    if (plan_.matched_alpha) {
      prepare_calibration(folder);
      const int calibrated = calibrate();
      if (calibrated != 0) return calibrated;
      if (plan_.calibrations.empty()) return 0;  // other shards are not finished yet
    }
    const int code = run_trials(folder);
    if (code > 1) return code;
    report(output);
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
    const AlphaCalibration calibration(configuration_, study_, rankers_);
    const Configuration& settings = calibration.configuration();
    ExperimentPlan plan = make_plan(settings, calibration_request());
    check_memory(settings, plan);
    const OutputFolder folder(plan.out, FolderKind::kExperiment, request_.shard);
    settle_existing(plan, folder);
    log_info("Calibrating α: {} of {} in {}", counted(trials_of(plan).size(), "trial"),
             counted(plan.trial.rounds, "round"), plan.out.string());
    write_manifest(settings, plan, folder, command_);
    if (const int code = run_and_summarise(plan); code != 0) return code;
    if (!calibration.complete()) {
      log_info(
          "Shard {} of {} has finished its calibration. When the trials of all shards are in {}, run this "
          "command again with --resume for the study.",
          plan.shard.index, plan.shard.count, plan.out.string());
      return 0;
    }
    plan_.calibrations = calibration.calibrations();
    for (const Calibration& found : plan_.calibrations) {
      if (found.bracketed) continue;
      log_warning(
          "{}: No α tried matches the error rate of full's certain orders ({:.4f}); using the nearest, α = "
          "{}. Try other values with --study-calibration-alphas.",
          found.ranker, found.target, found.alpha);
    }
    rankers_ = calibration.matched(plan_.calibrations);
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

  void report(const OutputFlags& output) const {
    const fs::path out = configuration_.run.out;
    StudyPlan plan = plan_;
    for (const StudyRanker& ranker : rankers_) plan.cells.push_back(ranker.cell);
    const Study study = analyse_study(read_experiment(out), std::move(plan));
    const std::string json = study_json(study);
    write_file_atomically(out / "study.csv", study_csv(study));
    write_file_atomically(out / "study.json", json);
    write_report_page(out);
    fmt::print("{}", output.json ? json : study_text(study, output.columns()));
    flush_output();
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

class BenchCovarianceCommand : public Command {
 public:
  std::string name() const override { return "covariance"; }
  std::string summary() const override {
    return "study: compare covariance structures and ensembles with full covariance in paired trials";
  }
  void declare(CLI::App& app) override {
    app.add_option("config", file_, "configuration file (TOML) with a [study]; optional")
        ->type_name("FILE");
    app.add_flag("--print-config", print_, "print the resolved configuration and exit");
    app.add_flag("--dry-run", dry_run_, "print trials, memory and estimated time, and exit");
    experiment_.declare(app);
    flags_.declare(app, &StudySettings::schema());
  }
  int run(const OutputFlags& output) override {
    const std::vector<SettingOverride> overrides = setting_overrides();
    const Configuration configuration = resolve(overrides);
    if (print_) {
      fmt::print("{}", print_configuration(configuration));
      return 0;
    }
    CovarianceStudy study(configuration, experiment_.request(), output.command_line);
    if (dry_run_) {
      study.dry_run(output);
      return 0;
    }
    return study.run(output);
  }

 private:
  std::optional<fs::path> file() const {
    return file_.empty() ? std::nullopt : std::optional<fs::path>(file_);
  }

  /// The overrides, with olranknet as the kind if the file has no ranker, and `--alpha matched` as a study
  /// setting.
  std::vector<SettingOverride> setting_overrides() const {
    std::vector<SettingOverride> overrides;
    const TomlDocument document = file() ? read_toml(*file()) : TomlDocument{};
    const bool has_ranker = std::any_of(document.tables.begin(), document.tables.end(),
                                        [](const auto& table) { return table.name == "ranker"; });
    if (!has_ranker) overrides.push_back({"ranker", "", "kind", "olranknet", "bench covariance"});
    for (SettingOverride override : flags_.overrides()) {
      if (override.table == "ranker" && override.key == "alpha" &&
          override.text == name_of(StudyAlpha::kMatched)) {
        override.table = "study";
      }
      refuse_study_axis(override);
      overrides.push_back(std::move(override));
    }
    return overrides;
  }

  static void refuse_study_axis(const SettingOverride& override) {
    if (override.table != "ranker") return;
    for (const auto& [key, axis] : {std::pair{"width", "--widths"},
                                    {"depth", "--depths"},
                                    {"covariance", "--structures"},
                                    {"budget", "--structures inducing-N"},
                                    {"members", "--structures ensemble-N"},
                                    {"noise_variance", "--noise-variances"},
                                    {"shadow", "--study-exact-widths"}}) {
      if (override.key == key)
        throw InvalidArgument(
            fmt::format("{}: The study varies this setting; use {}.", override.origin, axis));
    }
  }

  Configuration resolve(const std::vector<SettingOverride>& overrides) const {
    Configuration configuration = resolve_configuration(file(), overrides);
    if (!configuration.sweep.empty())
      throw InvalidArgument(
          fmt::format("'olrank bench covariance' does not support [sweep]; remove it from {}.", file_));
    refuse_search("bench covariance", configuration);
    if (!configuration.study) configuration.study.emplace();
    const StudyBase base = base_of(configuration, overrides);
    configuration.rankers = {base.network};
    if (has_ensembles(*configuration.study)) configuration.rankers.push_back(base.ensemble);
    if (configuration.study->alpha == StudyAlpha::kMatched &&
        base.network.explore.alpha_schedule != AlphaSchedule::kConstant) {
      throw InvalidArgument("--alpha matched requires --alpha-schedule constant.");
    }
    return configuration;
  }

  /// Ensembles take their settings from the file's p2neurrank [[ranker]]. Without one, they use that kind's
  /// defaults with the network's other settings.
  StudyBase base_of(const Configuration& configuration, std::vector<SettingOverride> overrides) const {
    StudyBase base;
    std::size_t networks = 0;
    std::size_t ensembles = 0;
    for (const RankerSettings& ranker : configuration.rankers) {
      const RankerKindRow& row = row_of(ranker.kind);
      if (is_network_with(row, OrderEvidence::kWidths)) {
        base.network = ranker;
        ++networks;
      } else if (is_network_with(row, OrderEvidence::kVotes)) {
        base.ensemble = ranker;
        ++ensembles;
      } else {
        throw InvalidArgument(fmt::format(
            "A study supports olranknet and ollambdarank, but ranker '{}' is neither.", ranker.name));
      }
    }
    if (networks != 1 || ensembles > 1) {
      throw InvalidArgument(
          "A study requires exactly one [[ranker]] of kind olranknet or ollambdarank, and accepts at most "
          "one of kind p2neurrank for its ensembles.");
    }
    if (ensembles > 0) return base;
    overrides.push_back(
        {"ranker", "", "kind", std::string(name_of(RankerKind::kP2NeurRank)), "bench covariance"});
    base.ensemble = resolve_configuration(file(), overrides, IgnoredSettings::kDrop).rankers.front();
    base.ensemble.name = name_of(RankerKind::kP2NeurRank);
    return base;
  }

  std::string file_;
  bool print_ = false;
  bool dry_run_ = false;
  ExperimentFlags experiment_;
  SettingFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_bench_covariance_command() {
  return std::make_unique<BenchCovarianceCommand>();
}

}  // namespace olrank
