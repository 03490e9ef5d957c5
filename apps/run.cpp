#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>

#include "apps/command.h"
#include "apps/configuration.h"
#include "apps/dry_run.h"
#include "apps/experiment_flags.h"
#include "apps/experiment_run.h"
#include "apps/experiment_setup.h"
#include "apps/setting_flags.h"
#include "core/error.h"
#include "core/io/folder.h"
#include "core/runtime/log.h"
#include "core/text/counted.h"

namespace olrank {
namespace {

class RunCommand : public Command {
 public:
  std::string name() const override { return "run"; }
  std::string summary() const override { return "one experiment: rankers x click models x folds x seeds"; }
  void declare(CLI::App& app) override {
    app.add_option("config", file_, "a TOML file; without one, defaults and flags")->type_name("FILE");
    app.add_flag("--print-config", print_, "print the resolved configuration and stop");
    app.add_flag("--dry-run", dry_run_, "print trials, memory and an estimate of time, and stop");
    experiment_.declare(app);
    app.add_option("--replay", replay_, "learn from recorded feedback instead of simulated users")
        ->type_name("FILE");
    app.add_option("--trace", trace_, "write what every round was; of exactly one trial")
        ->type_name("FILE");
    app.add_flag("--trace-detail", trace_detail_, "with parameters, squared widths and certain orders");
    flags_.declare(app);
  }
  int run(const OutputFlags& output) override {
    const auto file = file_.empty() ? std::nullopt : std::optional<std::filesystem::path>(file_);
    const Configuration configuration = resolve_configuration(file, flags_.overrides());
    if (print_) {
      fmt::print("{}", print_configuration(configuration));
      return 0;
    }
    refuse_others(configuration);
    ExperimentPlan plan = make_plan(configuration, request());
    if (dry_run_) {
      print_dry_run(configuration, plan, output);
      return 0;
    }
    std::optional<Trace> trace;
    if (trace_detail_ && trace_.empty())
      throw InvalidArgument("--trace-detail needs a file: --trace FILE.");
    check_memory(configuration, plan);  // before --force removes anything
    refuse_existing(plan);
    check_existing(plan);
    if (!trace_.empty()) plan.trace = &make_trace(configuration, plan, trace);
    remove_existing(plan);
    announce(configuration, plan);
    write_manifest(configuration, plan, output.command_line);
    write_configuration(configuration, plan.out / "config.toml");
    const int code = run_and_summarise(plan);
    write_report_page(plan.out);
    if (code == 0) print_summary(plan.out, output);
    std::fflush(stdout);  // the table stands above what follows
    log_info("The report is {}", (plan.out / "report.html").string());
    return code;
  }

 private:
  void refuse_others(const Configuration& configuration) const {
    refuse_study("run", configuration);
    if (configuration.sweep.empty()) return;
    throw InvalidArgument(
        fmt::format("{0} has a [sweep], which a run does not carry out; use 'olrank tune {0}'.", file_));
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
      throw InvalidArgument(fmt::format("--trace is of exactly one trial, and this run has {}.", trials));
    }
    if (experiment_.resume())
      throw InvalidArgument("--trace begins with the first round, so it does not go with --resume.");
    if (!replay_.empty())
      throw InvalidArgument("--trace tells what was ranked, so it does not go with --replay.");
    make_folder(plan.out);  // where a trace often lies
    trace.emplace(trace_, trace_detail_, configuration_json(configuration));
    return *trace;
  }

  static void announce(const Configuration& configuration, const ExperimentPlan& plan) {
    const std::string shard =
        plan.shard.count > 1 ? fmt::format(" (shard {} of {})", plan.shard.index, plan.shard.count) : "";
    log_info("{} of {}{} into {}; protocol {}", counted(trials_of(plan).size(), "trial"),
             counted(plan.trial.rounds, "round"), shard, plan.out.string(),
             name_of(configuration.protocol.name));
    for (const std::string& deviation : deviations(configuration)) log_info("  {}", deviation);
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

std::unique_ptr<Command> make_run_command() {
  return std::make_unique<RunCommand>();
}

}  // namespace olrank
