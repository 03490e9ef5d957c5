#pragma once

#include <string>
#include <vector>

#include "report/figures.h"
#include "report/page.h"
#include "report/study.h"

namespace olrank {

/// The answer for one user: each structure minus the exact one in offline NDCG and in certain share, and
/// its time per round over the exact one's. Empty if nothing is compared.
std::vector<ReportFigure> study_answers(const Study& study, const StudyUser& user);

/// Width ratios by round and by network width, false certainty against α, cost against width, as far as the
/// study has data for them.
std::vector<ReportFigure> study_figures(const Study& study);

/// The study's section of a page: its answer, three figures and a table of paired differences for each
/// user, and the other figures folded away.
void add_study(Page& page, const Study& study, const std::string& label);

}  // namespace olrank
