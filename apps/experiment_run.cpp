#include "apps/experiment_run.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/log.h"
#include "core/text/counted.h"
#include "report/findings.h"
#include "report/page.h"
#include "sim/summary_table.h"

namespace olrank {

int exit_code_of(const ExperimentOutcome& outcome) {
  if (outcome.signal != 0) return InterruptGuard::exit_code(outcome.signal);
  return outcome.failures.empty() ? 0 : 1;
}

int run_and_summarise(const ExperimentPlan& plan) {
  const ExperimentOutcome outcome = run_experiment(plan);
  if (plan.trace != nullptr) plan.trace->close();
  std::vector<std::string> damage;
  write_file_atomically(plan.out / "summary.csv", summary_csv(read_summaries(plan.out, &damage)));
  for (const std::string& sentence : damage) log_warning("{} Its trial is left out.", sentence);
  if (outcome.signal != 0) {
    log_info("Stopped by a signal; run the same command with --resume{} to continue.",
             plan.existing == Existing::kReplace ? " in place of --force" : "");
    return exit_code_of(outcome);
  }
  if (outcome.finished_before > 0)
    log_info("Skipped {} that had already finished.", counted(outcome.finished_before, "trial"));
  for (const std::string& failure : outcome.failures) log_warning("Failed: {}", failure);
  return exit_code_of(outcome);
}

Report write_report_page(const std::filesystem::path& out) {
  std::vector<ExperimentResults> experiments;
  experiments.push_back(read_experiment(out));
  Report report = compare_experiments(std::move(experiments));
  write_file_atomically(out / "report.html", report_page(report));
  return report;
}

void print_summary(const Report& report, const OutputFlags& output) {
  const ExperimentResults& experiment = report.experiments.front();
  std::vector<std::string> told;  // the report has warned of them
  const std::vector<SummaryRow> rows = read_summaries(experiment.folder, &told);
  write_file_atomically(experiment.folder / "summary.csv", summary_csv(rows));
  const ResultConventions about = conventions_of(experiment.run);
  if (output.json) {
    fmt::print("{}", summary_means_json(rows, about));
    return;
  }
  print_findings(report, output);
  fmt::print("{}", summary_text(rows, about, output.columns()));
}

void print_findings(const Report& report, const OutputFlags& output) {
  fmt::print("{}\n", findings_text(report, output.columns()));
}

}  // namespace olrank
