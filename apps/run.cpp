#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "apps/command.h"
#include "apps/configuration.h"
#include "apps/dry_run.h"
#include "apps/experiment_run.h"
#include "apps/experiment_setup.h"
#include "apps/setting_flags.h"
#include "apps/shard.h"
#include "core/error.h"
#include "core/runtime/log.h"

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
    auto* resume = app.add_flag("--resume", resume_, "go on with what an earlier run left in --out");
    app.add_flag("--force", force_, "replace what an earlier run left in --out")->excludes(resume);
    app.add_option("--shard", shard_,
                   "only trials I of N, I from 0; also read from a scheduler's variables")
        ->type_name("I/N");
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
    require_data(configuration);
    ExperimentPlan plan = make_plan(configuration, request());
    if (dry_run_) {
      print_dry_run(configuration, plan, output);
      return 0;
    }
    settle_existing(plan);
    check_memory(configuration, plan);
    std::optional<Trace> trace;
    if (trace_detail_ && trace_.empty())
      throw InvalidArgument("--trace-detail needs a file: --trace FILE.");
    if (!trace_.empty()) plan.trace = &make_trace(configuration, plan, trace);
    announce(configuration, plan);
    write_manifest(configuration, plan, command_line());
    const int code = run_and_summarise(plan);
    if (code == 0) print_summary(plan.out, output);
    return code;
  }

 private:
  static void require_data(const Configuration& configuration) {
    if (configuration.data.source.empty() && configuration.data.train.empty()) {
      throw InvalidArgument("There is no data to learn from: name a folder or \"synth:NAME\" with --data.");
    }
  }

  ExperimentRequest request() const {
    ExperimentRequest request;
    request.replay = replay_;
    request.shard = shard_.empty() ? shard_of_environment(std::getenv) : parse_shard(shard_);
    if (resume_) request.existing = Existing::kResume;
    if (force_) request.existing = Existing::kReplace;
    return request;
  }

  Trace& make_trace(const Configuration& configuration, const ExperimentPlan& plan,
                    std::optional<Trace>& trace) const {
    const std::size_t trials = trials_of(plan).size();
    if (trials != 1) {
      throw InvalidArgument(fmt::format("--trace is of exactly one trial, and this run has {}.", trials));
    }
    if (resume_)
      throw InvalidArgument("--trace begins with the first round, so it does not go with --resume.");
    if (!replay_.empty())
      throw InvalidArgument("--trace tells what was ranked, so it does not go with --replay.");
    trace.emplace(trace_, trace_detail_, configuration_json(configuration));
    return *trace;
  }

  static void announce(const Configuration& configuration, const ExperimentPlan& plan) {
    const std::string shard =
        plan.shard.count > 1 ? fmt::format(" (shard {} of {})", plan.shard.index, plan.shard.count) : "";
    log_info("{} trials of {} rounds{} into {}; protocol {}", trials_of(plan).size(), plan.trial.rounds,
             shard, plan.out.string(), name_of(configuration.protocol.name));
    for (const std::string& deviation : deviations(configuration)) log_info("  {}", deviation);
  }

  std::string command_line() const {
    std::string line = "olrank run";
    if (!file_.empty()) line += " " + file_;
    for (const SettingOverride& said : flags_.overrides()) {
      const std::string key = said.ranker.empty() ? said.key : said.ranker + "." + said.key;
      line += fmt::format(" --set '{}.{}={}'", said.table, key, said.text);
    }
    if (!shard_.empty()) line += " --shard " + shard_;
    if (!replay_.empty()) line += " --replay " + replay_;
    if (resume_) line += " --resume";
    return line;
  }

  std::string file_;
  bool print_ = false;
  bool dry_run_ = false;
  bool resume_ = false;
  bool force_ = false;
  std::string shard_;
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
