#pragma once

#include <filesystem>

#include "apps/command.h"
#include "sim/experiment.h"

namespace olrank {

/// Runs the plan and writes summary.csv. Returns the exit code: 0 done, 1 if trials failed, 130 or 143 if a
/// signal stopped it.
int run_and_summarise(const ExperimentPlan& plan);

/// Rewrites OUT/summary.csv from every finished trial in OUT and prints their means.
void print_summary(const std::filesystem::path& out, const OutputFlags& output);

/// Writes OUT/report.html from the trials so far, finished or not.
void write_report_page(const std::filesystem::path& out);

}  // namespace olrank
