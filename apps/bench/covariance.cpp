#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
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
#include "core/runtime/log.h"
#include "core/settings/toml_document.h"
#include "core/text/counted.h"
#include "report/study_exports.h"

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

/// One study: the calibration where α is to be matched, the trials, what they tell.
class CovarianceStudy {
 public:
  /// The configuration's rankers: the network, then what ensembles are made of where there are any.
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
          "α is matched between covariances, and this study has none besides full: add diagonal to its "
          "structures, or leave α as given.");
    }
    plan_.calibration_rounds = study_.calibration_rounds;
  }

  /// Whether a structure besides full has an α.
  bool has_alphas() const {
    return std::any_of(rankers_.begin(), rankers_.end(), [](const StudyRanker& ranker) {
      return ranker.cell.structure != kExactStructure && has_alpha(ranker.cell);
    });
  }

  void dry_run(const OutputFlags& output) const {
    const Configuration whole = experiment_configuration();
    const ExperimentPlan plan = make_plan(whole, request_);
    std::vector<DryRunCount> besides;
    if (plan_.matched_alpha) {
      const AlphaCalibration calibration(configuration_, study_, rankers_);
      const ExperimentPlan of_alpha = make_plan(calibration.configuration(), calibration_request());
      besides.push_back({"calibration_trials", "trials of the calibration come besides.",
                         static_cast<std::int64_t>(trials_of(of_alpha).size())});
    }
    print_dry_run(whole, plan, output, besides);
  }

  int run(const OutputFlags& output) {
    if (plan_.matched_alpha) {
      refuse_before_calibration();
      const int calibrated = calibrate();
      if (calibrated != 0) return calibrated;
      if (plan_.calibrations.empty()) return 0;  // other shards have still to come
    }
    const int played = play();
    if (played > 1) return played;
    tell(output);
    return played;
  }

 private:
  /// What --resume finds can be compared only once each α is known.
  void refuse_before_calibration() const {
    if (request_.existing == Existing::kResume) return;
    const Configuration whole = experiment_configuration();
    const ExperimentPlan plan = make_plan(whole, request_);
    check_memory(whole, plan);
    refuse_existing(plan);
    check_existing(plan);
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

  /// Plays what the calibration lacks and finds each α; leaves none where trials of other shards lack.
  int calibrate() {
    const AlphaCalibration calibration(configuration_, study_, rankers_);
    const Configuration& settings = calibration.configuration();
    ExperimentPlan plan = make_plan(settings, calibration_request());
    check_memory(settings, plan);
    settle_existing(plan);
    log_info("Calibration of α: {} of {} into {}", counted(trials_of(plan).size(), "trial"),
             counted(plan.trial.rounds, "round"), plan.out.string());
    write_manifest(settings, plan, command_);
    if (const int code = run_and_summarise(plan); code != 0) return code;
    if (!calibration.complete()) {
      log_info(
          "Shard {} of {} is calibrated. The study follows when every shard's trials lie in {}: call this "
          "command again with --resume.",
          plan.shard.index, plan.shard.count, plan.out.string());
      return 0;
    }
    plan_.calibrations = calibration.calibrations();
    for (const Calibration& found : plan_.calibrations) {
      if (found.bracketed) continue;
      log_warning(
          "{}: No α tried makes its certain orders as often wrong as full's ({:.4f}); α = {} is the "
          "nearest. "
          "Try others with --study-calibration-alphas.",
          found.ranker, found.target, found.alpha);
    }
    rankers_ = calibration.matched(plan_.calibrations);
    return 0;
  }

  int play() const {
    const Configuration whole = experiment_configuration();
    const ExperimentPlan plan = make_plan(whole, request_);
    check_memory(whole, plan);  // before --force removes anything
    settle_existing(plan);
    log_info("Study: {} with widths and depths, {} of {} into {}; protocol {}",
             counted(rankers_.size(), "structure"), counted(trials_of(plan).size(), "trial"),
             counted(plan.trial.rounds, "round"), plan.out.string(), name_of(configuration_.protocol.name));
    write_manifest(whole, plan, command_);
    write_configuration(whole, plan.out / "config.toml");
    write_configuration(configuration_, plan.out / "study.toml");
    return run_and_summarise(plan);
  }

  void tell(const OutputFlags& output) const {
    const fs::path out = configuration_.run.out;
    StudyPlan plan = plan_;
    for (const StudyRanker& ranker : rankers_) plan.cells.push_back(ranker.cell);
    const Study study = analyse_study(read_experiment(out), std::move(plan));
    const std::string json = study_json(study);
    write_file_atomically(out / "study.csv", study_csv(study));
    write_file_atomically(out / "study.json", json);
    write_report_page(out);
    fmt::print("{}", output.json ? json : study_text(study));
    std::fflush(stdout);  // the table stands above what follows
    if (study.finished < study.expected)
      log_info("{} of {} trials have finished.", study.finished, study.expected);
    log_info("The study is in {}, its page in {}", (out / "study.json").string(),
             (out / "report.html").string());
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
    return "a study: covariance structures and ensembles against full covariance, paired";
  }
  void declare(CLI::App& app) override {
    app.add_option("config", file_, "a TOML file with a [study]; without one, defaults and flags")
        ->type_name("FILE");
    app.add_flag("--print-config", print_, "print the resolved configuration and stop");
    app.add_flag("--dry-run", dry_run_, "print trials, memory and an estimate of time, and stop");
    experiment_.declare(app);
    flags_.declare(app, true);
  }
  int run(const OutputFlags& output) override {
    const std::vector<SettingOverride> said = sayings();
    const Configuration configuration = resolve(said);
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

  /// Networks learn here unless the file or a flag says which ones; `--alpha matched` speaks of the study.
  std::vector<SettingOverride> sayings() const {
    std::vector<SettingOverride> said;
    const TomlDocument document = file() ? read_toml(*file()) : TomlDocument{};
    const bool has_ranker = std::any_of(document.tables.begin(), document.tables.end(),
                                        [](const auto& table) { return table.name == "ranker"; });
    if (!has_ranker) said.push_back({"ranker", "", "kind", "olranknet", "bench covariance"});
    for (SettingOverride override : flags_.overrides()) {
      if (override.table == "ranker" && override.key == "alpha" &&
          override.text == name_of(StudyAlpha::kMatched)) {
        override.table = "study";
      }
      refuse_axis(override);
      said.push_back(std::move(override));
    }
    return said;
  }

  static void refuse_axis(const SettingOverride& override) {
    if (override.table != "ranker") return;
    for (const auto& [key, axis] : {std::pair{"width", "--widths"},
                                    {"depth", "--depths"},
                                    {"covariance", "--structures"},
                                    {"members", "--structures ensemble-N"},
                                    {"noise_variance", "--noise-variances"},
                                    {"shadow", "--study-exact-widths"}}) {
      if (override.key == key)
        throw InvalidArgument(
            fmt::format("{}: The study sets this in each of its rankers; use {}.", override.origin, axis));
    }
  }

  Configuration resolve(const std::vector<SettingOverride>& said) const {
    Configuration configuration = resolve_configuration(file(), said);
    if (!configuration.sweep.empty())
      throw InvalidArgument(fmt::format("{} has a [sweep], which a study does not carry out.", file_));
    if (!configuration.study) configuration.study.emplace();
    const StudyBase base = base_of(configuration, said);
    configuration.rankers = {base.network};
    if (has_ensembles(*configuration.study)) configuration.rankers.push_back(base.ensemble);
    if (configuration.study->alpha == StudyAlpha::kMatched &&
        base.network.explore.alpha_schedule != AlphaSchedule::kConstant) {
      throw InvalidArgument("An α that grows by theory cannot be matched; use --alpha-schedule constant.");
    }
    return configuration;
  }

  /// A file may say what ensembles are made of in a [[ranker]] of their own kind. Where it does not, they
  /// have that kind's defaults, and whatever else was said about the network holds for them too.
  StudyBase base_of(const Configuration& configuration, std::vector<SettingOverride> said) const {
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
        throw InvalidArgument(
            fmt::format("A study is of olranknet or ollambdarank, and '{}' is neither.", ranker.name));
      }
    }
    if (networks != 1 || ensembles > 1) {
      throw InvalidArgument(
          "A study takes one [[ranker]] of olranknet or ollambdarank, and besides it one of p2neurrank at "
          "most, of which its ensembles are made.");
    }
    if (ensembles > 0) return base;
    said.push_back(
        {"ranker", "", "kind", std::string(name_of(RankerKind::kP2NeurRank)), "bench covariance"});
    base.ensemble = resolve_configuration(file(), said).rankers.front();
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
