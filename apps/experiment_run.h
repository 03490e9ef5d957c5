#pragma once

#include <filesystem>

#include "apps/command.h"
#include "report/comparison.h"
#include "sim/experiment.h"

namespace olrank {

/// 0 done, 1 if trials failed, 130 or 143 if a signal stopped the run.
int exit_code_of(const ExperimentOutcome& outcome);

/// Runs the plan and writes summary.csv. Returns the exit code.
int run_and_summarise(const ExperimentPlan& plan);

/// Writes OUT/report.html from the trials so far, finished or not. Returns what the page shows.
Report write_report_page(const std::filesystem::path& out);

/// Rewrites summary.csv of a single experiment from every finished trial; prints the findings and the
/// means.
void print_summary(const Report& report, const OutputFlags& output);

/// What the results say, wrapped to the width of the output.
void print_findings(const Report& report, const OutputFlags& output);

}  // namespace olrank
