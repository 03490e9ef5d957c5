#include "apps/experiment_run.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/runtime/interrupt.h"
#include "core/runtime/log.h"
#include "core/text/counted.h"
#include "report/comparison.h"
#include "report/page.h"
#include "sim/summary_table.h"

namespace olrank {

int run_and_summarise(const ExperimentPlan& plan) {
  const ExperimentOutcome outcome = run_experiment(plan);
  if (plan.trace != nullptr) plan.trace->close();
  write_file_atomically(plan.out / "summary.csv", summary_csv(read_summaries(plan.out)));
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

void print_summary(const std::filesystem::path& out, const OutputFlags& output) {
  const std::vector<SummaryRow> rows = read_summaries(out);
  write_file_atomically(out / "summary.csv", summary_csv(rows));
  const ResultConventions about = conventions_of(read_run_description(out));
  fmt::print("{}", output.json ? summary_means_json(rows, about) : summary_text(rows, about));
}

void write_report_page(const std::filesystem::path& out) {
  std::vector<ExperimentResults> experiments;
  experiments.push_back(read_experiment(out));
  write_file_atomically(out / "report.html", report_page(compare_experiments(std::move(experiments))));
}

}  // namespace olrank
