#include <fmt/format.h>

#include <optional>
#include <string>

#include "apps/command.h"
#include "apps/setting_flags.h"
#include "core/io/standard_output.h"
#include "core/runtime/log.h"
#include "core/throw_error.h"
#include "jobs/experiment_run.h"
#include "jobs/experiment_setup.h"
#include "jobs/recorded_experiment.h"
#include "jobs/settings/configuration.h"

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
    if (print_) {
      fmt::print("{}", print_configuration(configuration));
      return 0;
    }
    refuse_unsupported_tables(configuration);
    configuration.run.device = faster_device_of(configuration, request());
    ExperimentPlan plan = make_plan(configuration, request());
    if (dry_run_) {
      fmt::print("{}", dry_run_output(configuration, plan, output.form()));
      return 0;
    }
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

}  // namespace

const CommandEntry kRunCommand{"run", "run an experiment: rankers x simulated users x folds x seeds",
                               make_command<RunCommand>};

}  // namespace olrank
