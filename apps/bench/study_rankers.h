#pragma once

#include <string>
#include <vector>

#include "apps/study_settings.h"
#include "models/ranker_settings.h"
#include "report/study_plan.h"

namespace olrank {

/// What the rankers of a study have in common, apart from the study's own axes.
struct StudyBase {
  RankerSettings network;   // of structures that are covariances
  RankerSettings ensemble;  // of ensembles
};

struct StudyRanker {
  StudyCell cell;
  RankerSettings settings;
};

/// Every structure with every width and depth; ensembles with every noise variance too. Throws
/// InvalidArgument for an unknown structure, for a study without `full`, and for one that compares nothing.
std::vector<StudyRanker> study_rankers(const StudySettings& study, const StudyBase& base);

/// Whether the study has a structure that is an ensemble.
bool has_ensembles(const StudySettings& study);

/// Whether α decides anything in the structure.
bool has_alpha(const StudyCell& cell);

/// The ranker with another α: "diagonal-m16-L2+alpha=0.1".
StudyRanker with_alpha(StudyRanker ranker, double alpha);

}  // namespace olrank
