#pragma once

#include <vector>

#include "report/figures.h"
#include "report/study.h"

namespace olrank {

/// The answer for one user: each structure minus the exact one in offline NDCG and in certain share, and
/// its time per round over the exact one's. Empty if nothing is compared.
std::vector<ReportFigure> study_answers(const Study& study, const StudyUser& user);

/// Width ratios by round and by network width, false certainty against α, cost against width, as far as the
/// study has data for them.
std::vector<ReportFigure> study_figures(const Study& study);

}  // namespace olrank
