#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/io/folder.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "core/settings/enum_names.h"
#include "core/settings/value.h"
#include "core/throw_error.h"
#include "jobs/experiment_run.h"
#include "jobs/output_folder.h"
#include "jobs/recommending/recommender_run.h"
#include "jobs/settings/configuration.h"
#include "jobs/tuning/tuning.h"
#include "report/experiment_results.h"
#include "report/outputs.h"
#include "report/report.h"
#include "serve/service_process.h"
#include "serve/status_page.h"

namespace olrank {
namespace {

class RunCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "config", file_, "FILE", "configuration file (TOML); optional");
    app.add_flag("--print-config", print_, "print the resolved configuration and exit");
    app.add_flag("--dry-run", dry_run_, "print trials, memory and estimated time, and exit");
    experiment_.declare(app);
    add_option(app, "--replay", replay_, "FILE", "learn from recorded feedback instead of simulated users");
    add_output(app, "--trace", trace_, "FILE", "write a trace of every round; requires exactly one trial");
    app.add_flag("--trace-detail", trace_detail_,
                 "add parameters, squared widths and certain orders to the trace");
    flags_.declare(app);
  }
  int run(const OutputFlags& output) override {
    Configuration configuration = resolve();
    if (print_) return printed(print_configuration(configuration));
    refuse_unsupported_tables(configuration);
    ExperimentRequest asked = request();
    settle_device(configuration, asked);
    ExperimentPlan plan = make_plan(configuration, asked);
    if (dry_run_) return printed(dry_run_output(configuration, plan, output.form()));
    if (trace_detail_ && trace_.empty()) throw InvalidArgument("--trace-detail requires --trace FILE.");
    std::optional<Trace> trace;
    const auto folder = prepare_experiment(configuration, plan, output.command_line, [&] {
      if (!trace_.empty()) plan.trace = &make_trace(configuration, plan, trace);
    });
    const int code = run_and_summarise(plan);
    const Report report = write_report_page(plan.out);
    if (code == 0) fmt::print("{}", summary_output(report, output.form()));
    flush_output();
    log_info("Report: {}", (plan.out / "report.html").string());
    return code;
  }

 private:
  Configuration resolve() const {
    const std::vector<SettingOverride> overrides = flags_.overrides();
    if (!file_.empty()) return resolve_configuration(std::filesystem::path(file_), overrides);
    if (experiment_.resume() && names_only_folder(overrides)) return continued_configuration(overrides);
    return resolve_configuration(std::nullopt, overrides);
  }

  void refuse_unsupported_tables(const Configuration& configuration) const {
    refuse_study("run", configuration);
    refuse_search("run", configuration);
    if (configuration.sweep.empty()) return;
    throw_error<InvalidArgument>("'olrank run' does not support [sweep]; use 'olrank tune {}'.", file_);
  }

  ExperimentRequest request() const {
    ExperimentRequest request = experiment_.request();
    request.replay = replay_;
    return request;
  }

  Trace& make_trace(const Configuration& configuration, const ExperimentPlan& plan,
                    std::optional<Trace>& trace) const {
    const std::size_t trials = trials_of(plan).size();
    if (trials != 1) {
      throw_error<InvalidArgument>("--trace requires exactly one trial, but this run has {}.", trials);
    }
    if (experiment_.resume())
      throw InvalidArgument("--trace starts at the first round and cannot be combined with --resume.");
    if (!replay_.empty())
      throw InvalidArgument("--trace records ranked lists and cannot be combined with --replay.");
    trace.emplace(trace_, trace_detail_, configuration_json(configuration));
    return *trace;
  }

  std::string file_;
  bool print_ = false;
  bool dry_run_ = false;
  ExperimentFlags experiment_;
  std::string replay_;
  std::string trace_;
  bool trace_detail_ = false;
  SettingFlags flags_;
};

namespace fs = std::filesystem;

class TuneCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "config", file_, "FILE", "configuration file (TOML) with a [sweep]");
    add_option(
        app, "--by", by_, "NAME",
        "choose by the area under this curve: offline, online, or both (their mean); or worst: by the "
        "10th percentile over seeds, on the fold and with the user where it is lowest [default: "
        "offline]");
    app.add_flag("--print-config", print_, "print the resolved configuration and exit");
    app.add_flag("--dry-run", dry_run_, "print grid points, trials and estimated time, and exit");
    experiment_.declare(app);
    flags_.declare(app, &SearchSettings::schema());
  }
  int run(const OutputFlags& output) override {
    if (file_.empty())
      throw InvalidArgument(
          "No configuration file given. Usage: olrank tune FILE; see 'olrank tune --help'.");
    if (is_recommend_study(file_)) return tune_recommenders(output);
    const Configuration configuration = resolve_configuration(fs::path(file_), flags_.overrides());
    refuse_study("tune", configuration);
    const auto by = parse_choice<SweepCriterion>("--by", by_);
    if (print_) return printed(print_configuration(configuration));
    if (configuration.sweep.empty()) {
      throw_error<InvalidArgument>(
          "{} has no [sweep]; add one with the values to try, such as alpha = [0.1, 1], or use 'olrank "
          "run'.",
          file_);
    }
    const ExperimentRequest request = experiment_.request();
    if (dry_run_) return printed(tuning_dry_run(configuration, by, request, output.form()));
    return run_tuning(configuration, by, request, output.command_line, output.form(), write_output);
  }

 private:
  /// A study that keeps of each kind the value of the best validation.
  int tune_recommenders(const OutputFlags& output) const {
    RecommenderStudyRequest request{.file = file_, .out = "runs/tune"};
    request.choose = true;
    for (const SettingOverride& override : flags_.overrides()) {
      if (override.table != "run" || override.key != "out") {
        throw_error<InvalidArgument>(
            "{} does not apply to a study of recommenders: write its settings into {}.", override.origin,
            file_);
      }
      request.out = override.text;
    }
    return run_recommender_study(request, output.command_line, output.form(), write_output);
  }

  std::string file_;
  std::string by_ = "offline";
  bool print_ = false;
  bool dry_run_ = false;
  ExperimentFlags experiment_;
  SettingFlags flags_;
};

class DemoCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "--port", port_, "N", "port of 127.0.0.1; 0 picks a free one [default: 8090]");
    add_option(app, "--state", state_, "DIR",
               "folder that keeps what was learned [default: a temporary one, removed at the end]");
    add_option(app, "--seed", seed_, "N",
               "random seed of products, simulated people and rankers [default: 1]");
  }

  int run(const OutputFlags& output) override {
    if (port_ < 0 || port_ > 65535)
      throw_error<InvalidArgument>("--port must be from 0 to 65535, not {}.", port_);
    if (seed_ < 0) throw_error<InvalidArgument>("--seed must be at least 0, not {}.", seed_);
    const auto seed = static_cast<std::uint64_t>(seed_);
    std::optional<ScratchFolder> scratch;
    const std::filesystem::path folder =
        state_.empty() ? scratch.emplace().path() : std::filesystem::path(state_);
    // Two rankers for each simulated person and for the person who looks at the page, for every start.
    std::vector<ServiceOptions> services(2 * (kDemoTastes + 1) * kDemoStarts);
    for (std::size_t number = 0; number < services.size(); ++number) {
      ServiceOptions& one = services[number];
      one.state = (folder / fmt::format("ranker{}", number)).string();
      if (number > 0) one.surface = fmt::format("{}", number);
      one.request.features = kDemoFeatures;
      one.request.seed = seed_;
      one.http.port = port_;
      one.warns_of_first_lists = false;
    }
    services.front().page = demo_page(seed);
    if (!output.verbose) set_verbosity(Verbosity::kQuiet);
    run_services(services);
    return 0;
  }

 private:
  int port_ = 8090;
  std::string state_;
  std::int64_t seed_ = 1;
};

class ReportCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "experiments", folders_, "DIR", "output folders of 'olrank run'; several are compared");
    add_option(app, "--out", out_, "DIR", "folder for report.html [default: that of a single experiment]");
    add_option(app, "--figures", figures_, "DIR", "write every figure and its data as CSV to DIR");
    add_output(app, "--latex", latex_, "FILE", "write LaTeX tables (booktabs), one for each user");
    add_option(app, "--latex-users", latex_users_, "NAMES",
               "put these users side by side into one table; given several times, into several tables");
    add_output(app, "--csv", csv_, "FILE", "write final metrics and mean curves as CSV");
    add_output(app, "--json", json_, "FILE",
               "write metrics, curves and significance tests as JSON; without FILE, print them")
        ->expected(0, 1);
    add_option(app, "--baseline", baseline_, "NAME",
               "ranker that differences are taken against [default: the best one offline]");
    json_option_ = app.get_option("--json");
  }

  int run(const OutputFlags& output) override {
    parse_json_option();
    if (folders_.empty())
      throw InvalidArgument("No experiment given. Usage: olrank report DIR; see 'olrank report --help'.");
    if (latex_.empty() && !latex_users_.empty())
      throw InvalidArgument("--latex-users requires --latex FILE, the file that the tables go to.");
    if (folders_.size() > 1 && out_.empty())
      throw InvalidArgument("Comparing several experiments requires an output folder: --out DIR.");
    std::vector<ExperimentResults> experiments;
    for (const std::string& folder : folders_) experiments.push_back(read_experiment(folder));
    for (const std::string& folder : {page_folder().string(), figures_}) {
      if (!folder.empty()) OutputFolder::require_own(folder, FolderKind::kReport);
    }
    const Report report = compare_experiments(std::move(experiments), baseline_);
    for (const std::string& warning : report.warnings) log_warning("{}", warning);
    write_files(report, output.command_line);
    print_tables(report, output);
    flush_output();
    log_missing_trials(report);
    log_info("Report: {}", (page_folder() / "report.html").string());
    return 0;
  }

 private:
  /// "--json" takes an optional file. An argument that is a folder is an experiment instead.
  void parse_json_option() {
    prints_json_ = json_option_->count() > 0 && json_.empty();
    if (!json_.empty() && fs::is_directory(json_)) {
      folders_.insert(folders_.begin(), json_);
      json_.clear();
      prints_json_ = true;
    }
  }

  fs::path page_folder() const { return out_.empty() ? folders_.front() : out_; }

  /// The users of each table: one list for each --latex-users.
  std::vector<std::vector<std::string>> latex_tables() const {
    std::vector<std::vector<std::string>> tables;
    for (const std::string& names : latex_users_) {
      tables.push_back(CLI::detail::split(names, ','));
      for (std::string& name : tables.back()) CLI::detail::trim(name);
    }
    return tables;
  }

  void write_files(const Report& report, const std::string& command) const {
    // Everything that may be refused comes before the first file.
    const std::string latex = latex_.empty() ? "" : report_latex(report, latex_tables());
    const fs::path folder = page_folder();
    make_report_folder(folder, command);
    write_file_atomically(folder / "report.html", report_page(report));
    if (!figures_.empty()) {
      make_report_folder(figures_, command);
      log_info("{} figures in {}", write_figures(report, figures_), figures_);
    }
    if (!latex_.empty()) write_and_say(latex_, "a LaTeX table", latex);
    if (!csv_.empty()) write_and_say(csv_, "final metrics and mean curves as CSV", report_csv(report));
    if (!json_.empty()) write_and_say(json_, "metrics, curves and tests as JSON", report_json(report));
  }

  static void write_and_say(const std::string& file, std::string_view what, const std::string& text) {
    write_file_atomically(file, text);
    log_info("Wrote {}: {}", file, what);
  }

  void print_tables(const Report& report, const OutputFlags& output) const {
    if (prints_json_ || output.json) {
      fmt::print("{}", report_json(report));
      return;
    }
    if (report.experiments.size() == 1 && out_.empty()) {
      fmt::print("{}", summary_output(report, output.form()));
      return;
    }
    fmt::print("{}\n", findings_text(report, output.columns()));
    // A comparison does not rewrite the experiments' own files.
    for (std::size_t i = 0; i < report.experiments.size(); ++i) {
      const ExperimentResults& experiment = report.experiments[i];
      fmt::print("{}{}\n{}", i > 0 ? "\n" : "", report.labels[i],
                 summary_text(finished_trials(experiment.trials), conventions_of(experiment.run),
                              output.columns()));
    }
  }

  static void log_missing_trials(const Report& report) {
    for (const ExperimentResults& experiment : report.experiments) {
      if (experiment.finished == experiment.expected) continue;
      // The test of a tuning with a choice per fold and user has no single configuration.
      const fs::path configuration = experiment.folder / "config.toml";
      const std::string command = fs::exists(configuration)
                                      ? fmt::format("'olrank run {} --resume'", configuration.string())
                                      : std::string("the original command with --resume");
      log_info("{} of {} trials have finished; run {} to continue.", experiment.finished,
               experiment.expected, command);
      for (const std::string& line : missing_lines(experiment)) log_info("  {}", line);
    }
  }

  std::vector<std::string> folders_;
  std::string out_;
  std::string figures_;
  std::string latex_;
  std::vector<std::string> latex_users_;
  std::string csv_;
  std::string json_;
  std::string baseline_;
  CLI::Option* json_option_ = nullptr;
  bool prints_json_ = false;
};

}  // namespace

const CommandEntry kRunCommand{"run", "run an experiment: rankers x simulated users x folds x seeds",
                               make_command<RunCommand>};

const CommandEntry kTuneCommand{"tune", "tune swept settings on the validation set, then test the winners",
                                make_command<TuneCommand>};

const CommandEntry kDemoCommand{"demo", "serve a page on which one clicks and sees a ranker learn",
                                make_command<DemoCommand>};

const CommandEntry kReportCommand{
    "report",
    "report the results of one or several experiments, finished or not, as a page, figures and "
    "tables",
    make_command<ReportCommand>};

}  // namespace olrank
