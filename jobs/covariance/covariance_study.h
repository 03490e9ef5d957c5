#pragma once

#include <string>

#include "core/text/text_table.h"
#include "jobs/experiment_setup.h"
#include "jobs/settings/configuration.h"

namespace olrank {

/// The trials of a study of covariances, with memory and estimated time. The configuration's rankers are
/// the network and, if the study has ensembles, their base.
std::string covariance_study_dry_run(const Configuration& configuration, const ExperimentRequest& request,
                                     const OutputForm& form);

/// Calibrates if α is matched, runs the trials, and writes and prints their analysis. Returns the exit
/// code.
int run_covariance_study(const Configuration& configuration, const ExperimentRequest& request,
                         const std::string& command, const OutputForm& form, const TextSink& print);

}  // namespace olrank
