#pragma once

#include <string>

#include "core/text/text_table.h"
#include "jobs/experiment_setup.h"
#include "jobs/settings/configuration.h"
#include "jobs/tuning/sweep.h"

namespace olrank {

/// The grid's size, trials, memory and estimated time.
std::string tuning_dry_run(const Configuration& configuration, const ChoiceRule& rule,
                           const ExperimentRequest& request, const OutputForm& form);

/// How far a tuning goes on its own. Where others play trials in its folders, it only makes them ready:
/// that of the grid, and from the finished grid that of the winners' test.
enum class TuningStep { kWhole, kMakeGrid, kChoose };

/// Runs the grid of the configuration's [sweep] on the validation set, chooses, and runs the winners on the
/// test set, which it prints. Returns the exit code.
int run_tuning(const Configuration& configuration, const ChoiceRule& rule, const ExperimentRequest& request,
               const std::string& command, const OutputForm& form, const TextSink& print,
               TuningStep step = TuningStep::kWhole);

}  // namespace olrank
