#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/text/text_table.h"
#include "jobs/experiment_run.h"
#include "jobs/settings/configuration.h"
#include "jobs/settings/run_settings.h"
#include "models/skeleton/ranker_settings.h"
#include "report/run_description.h"

namespace olrank {

/// The settings that the rankers of a study share, apart from the study's axes.
struct StudyBase {
  RankerSettings network;   // base of the covariance structures
  RankerSettings ensemble;  // base of the ensembles
};

struct StudyRanker {
  StudyCell cell;
  RankerSettings settings;
};

/// Every structure with every width and depth; ensembles also with every noise variance. Throws
/// InvalidArgument for an unknown structure, and for a study without `full` or without anything to compare.
std::vector<StudyRanker> study_rankers(const StudySettings& study, const StudyBase& base);

/// N of "ensemble-N"; 0 if the structure is not an ensemble.
std::int64_t members_of(const std::string& structure);

bool has_ensembles(const StudySettings& study);

bool has_alpha(const StudyCell& cell);

/// The ranker with another α, named "diagonal-m16-L2+alpha=0.1".
StudyRanker with_alpha(StudyRanker ranker, double alpha);

/// The trials of a study of covariances, with memory and estimated time. The configuration's rankers are
/// the network and, if the study has ensembles, their base.
std::string covariance_study_dry_run(const Configuration& configuration, ExperimentRequest request,
                                     const OutputForm& form);

/// Calibrates if α is matched, runs the trials, and writes and prints their analysis. Returns the exit
/// code.
int run_covariance_study(const Configuration& configuration, ExperimentRequest request,
                         const std::string& command, const OutputForm& form, const TextSink& print);

}  // namespace olrank
