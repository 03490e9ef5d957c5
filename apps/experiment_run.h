#pragma once

#include <filesystem>

#include "apps/command.h"
#include "sim/experiment.h"

namespace olrank {

/// Runs the plan and leaves summary.csv behind. Says what was done; returns the exit code: 0 done, 1 when
/// trials failed, 130 or 143 when a signal stopped it.
int run_and_summarise(const ExperimentPlan& plan);

/// Rewrites OUT/summary.csv from every finished trial below OUT and prints their means.
void print_summary(const std::filesystem::path& out, const OutputFlags& output);

/// Writes OUT/report.html from whatever is there, finished or not.
void write_report_page(const std::filesystem::path& out);

}  // namespace olrank
