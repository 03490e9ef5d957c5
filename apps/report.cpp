#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "apps/command.h"
#include "core/error.h"
#include "core/io/atomic_file.h"
#include "core/runtime/log.h"
#include "core/runtime/progress.h"
#include "jobs/experiment_run.h"
#include "jobs/output_folder.h"
#include "report/dashboard.h"
#include "report/experiment_results.h"
#include "report/exports.h"
#include "report/figure_files.h"
#include "report/findings.h"
#include "report/latex_table.h"
#include "report/report.h"
#include "report/report_page.h"
#include "report/summary_table.h"

namespace olrank {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Shows an experiment's progress until it finishes or a signal arrives. Returns the signal, or 0.
int watch_experiment(const fs::path& folder, double interval, const OutputFlags& output) {
  const InterruptGuard guard;
  const bool redraws = isatty(STDOUT_FILENO) != 0;
  constexpr int kUnlimited = 100;
  const int columns = output.columns() > 0 ? output.columns() : kUnlimited;
  std::string shown;
  for (;;) {
    // The lock first: a run that ends in between has written all of its files.
    const bool in_use = OutputFolder::in_use(folder);
    const DashboardState state = dashboard_state(read_experiment(folder), in_use);
    const std::string text = dashboard_text(state, columns);
    if (redraws) {
      fmt::print("\x1b[H\x1b[2J{}", text);
    } else if (text != shown) {
      fmt::print("{}\n", text);
    }
    shown = text;
    flush_output();
    if (state.activity == DashboardState::Activity::kFinished) return 0;
    // Short sleeps, so that a signal takes effect at once.
    const Clock::time_point next =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval));
    while (Clock::now() < next) {
      if (InterruptGuard::requested() != 0) return InterruptGuard::requested();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

class ReportCommand : public Command {
 public:
  void declare(CLI::App& app) override {
    add_option(app, "experiments", folders_, "DIR", "output folders of 'olrank run'; several are compared");
    add_option(app, "--out", out_, "DIR", "folder for report.html [default: that of a single experiment]");
    add_option(app, "--figures", figures_, "DIR", "write every figure and its data as CSV to DIR");
    add_option(app, "--figures-format", formats_, "FORMATS",
               "svg (for light and dark ground), pdf, or svg,pdf")
        ->delimiter(',')
        ->capture_default_str();
    add_output(app, "--latex", latex_, "FILE", "write LaTeX tables (booktabs), one for each user");
    add_option(app, "--latex-users", latex_users_, "NAMES",
               "put these users side by side into one table; given several times, into several tables");
    add_output(app, "--csv", csv_, "FILE", "write final metrics and mean curves as CSV");
    add_output(app, "--json", json_, "FILE",
               "write metrics, curves and significance tests as JSON; without FILE, print them")
        ->expected(0, 1);
    add_option(app, "--baseline", baseline_, "NAME",
               "ranker that differences are taken against [default: the best one offline]");
    app.add_flag("--watch", watch_, "show progress until the experiment finishes");
    add_option(app, "--every", interval_, "SECONDS", "seconds between updates of --watch [default: 2]");
    json_option_ = app.get_option("--json");
  }

  int run(const OutputFlags& output) override {
    parse_json_option();
    if (folders_.empty())
      throw InvalidArgument("No experiment given. Usage: olrank report DIR; see 'olrank report --help'.");
    if (figures_.empty() && formats_ != std::vector<std::string>{kSvgFormat})
      throw InvalidArgument("--figures-format requires --figures DIR, the folder that figures go to.");
    if (latex_.empty() && !latex_users_.empty())
      throw InvalidArgument("--latex-users requires --latex FILE, the file that the tables go to.");
    if (watch_) {
      if (folders_.size() > 1)
        throw InvalidArgument("--watch supports a single experiment; name one folder.");
      if (!(interval_ > 0.0)) throw InvalidArgument("--every must be above 0 seconds.");
      if (const int signal = watch_experiment(folders_.front(), interval_, output); signal != 0)
        return InterruptGuard::exit_code(signal);
    }
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
    const FigureWriter writer(formats_);
    const std::string latex = latex_.empty() ? "" : report_latex(report, latex_tables());
    const fs::path folder = page_folder();
    make_report_folder(folder, command);
    write_file_atomically(folder / "report.html", report_page(report));
    if (!figures_.empty()) {
      make_report_folder(figures_, command);
      log_info("{} figures in {}", writer.write(report, figures_), figures_);
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
  std::vector<std::string> formats_ = {kSvgFormat};
  std::string latex_;
  std::vector<std::string> latex_users_;
  std::string csv_;
  std::string json_;
  std::string baseline_;
  CLI::Option* json_option_ = nullptr;
  bool prints_json_ = false;
  bool watch_ = false;
  double interval_ = 2.0;
};

}  // namespace

const CommandEntry kReportCommand{
    "report",
    "report the results of one or several experiments, finished or not, as a page, figures and "
    "tables",
    make_command<ReportCommand>};

}  // namespace olrank
