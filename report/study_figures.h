#pragma once

#include <vector>

#include "report/figures.h"
#include "report/study.h"

namespace olrank {

/// Width ratios by round and by network width, false certainty against α, cost against width, as far as the
/// study has data for them.
std::vector<ReportFigure> study_figures(const Study& study);

}  // namespace olrank
