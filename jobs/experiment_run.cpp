#include "jobs/experiment_run.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/log.h"
#include "core/settings/enum_names.h"
#include "core/text/counted.h"
#include "jobs/dry_run.h"
#include "jobs/experiment_setup.h"
#include "jobs/recorded_experiment.h"
#include "report/findings.h"
#include "report/report_page.h"
#include "report/summary_table.h"

namespace olrank {

namespace {

/// Returns what the folder holds once the run has finished; Existing::kResume adds what it held before.
Configuration whole_experiment(const Configuration& configuration, const ExperimentPlan& plan) {
  const bool recorded_feedback = !plan.users.front().make;
  if (plan.existing != Existing::kResume || recorded_feedback) return configuration;
  const auto recorded = recorded_configuration(configuration.run.out);
  if (!recorded) return configuration;
  Configuration whole = extended_experiment(*recorded, configuration);
  const std::int64_t before = recorded->protocol.rounds;
  if (before < configuration.protocol.rounds)
    log_info("Extending from {} to {} rounds.", before, configuration.protocol.rounds);
  return whole;
}

void announce(const Configuration& configuration, const ExperimentPlan& plan) {
  const std::string shard =
      plan.shard.count > 1 ? fmt::format(" (shard {} of {})", plan.shard.index, plan.shard.count) : "";
  log_info("Running {} of {}{} in {}, protocol {}", counted(trials_of(plan).size(), "trial"),
           counted(plan.trial.rounds, "round"), shard, plan.out.string(),
           name_of(configuration.protocol.name));
  for (const std::string& deviation : deviations(configuration)) log_info("  {}", deviation);
}

}  // namespace

std::unique_ptr<OutputFolder> prepare_experiment(const Configuration& configuration,
                                                 const ExperimentPlan& plan, const std::string& command,
                                                 const std::function<void()>& last_check) {
  OutputFolder::require_own(plan.out, FolderKind::kExperiment);  // before the data is read
  check_memory(configuration, plan);                             // before --force removes anything
  auto folder = std::make_unique<OutputFolder>(plan.out, FolderKind::kExperiment, plan.shard);
  refuse_existing(plan, *folder);
  const Configuration whole = whole_experiment(configuration, plan);
  check_existing(plan);
  if (last_check) last_check();
  remove_existing(plan, *folder);
  announce(configuration, plan);
  write_manifest(whole, plan, *folder, command);
  write_configuration(whole, plan.out / "config.toml");
  return folder;
}

ExperimentOutcome run_and_write(const ExperimentPlan& plan) {
  ExperimentOutcome outcome = run_experiment(plan);
  if (plan.trace != nullptr) plan.trace->close();
  std::vector<std::string> damage;
  const std::vector<TrialResults> trials = read_finished_trials(plan.out, &damage);
  write_file_atomically(plan.out / "summary.csv", summary_csv(finished_trials(trials)));
  for (const std::string& sentence : damage) log_warning("{}", sentence);
  return outcome;
}

int run_and_summarise(const ExperimentPlan& plan) {
  const ExperimentOutcome outcome = run_and_write(plan);
  if (outcome.signal != 0) {
    log_info("Stopped by a signal; run the same command with --resume{} to continue.",
             plan.existing == Existing::kReplace ? " in place of --force" : "");
    return InterruptGuard::exit_code(outcome.signal);
  }
  if (outcome.finished_before > 0)
    log_info("Skipped {} that had already finished.", counted(outcome.finished_before, "trial"));
  for (const std::string& failure : outcome.failures) log_warning("Failed: {}", failure);
  return outcome.failures.empty() ? 0 : 1;
}

Report write_report_page(const std::filesystem::path& out) {
  std::vector<ExperimentResults> experiments;
  experiments.push_back(read_experiment(out));
  Report report = compare_experiments(std::move(experiments));
  write_file_atomically(out / "report.html", report_page(report));
  return report;
}

std::string summary_output(const Report& report, const OutputForm& form) {
  const ExperimentResults& experiment = report.experiments.front();
  const TrialList trials = finished_trials(experiment.trials);
  write_file_atomically(experiment.folder / "summary.csv", summary_csv(trials));
  const ResultConventions about = conventions_of(experiment.run);
  if (form.json) return summary_means_json(trials, about);
  return findings_text(report, form.columns) + "\n" + summary_text(trials, about, form.columns);
}

}  // namespace olrank
