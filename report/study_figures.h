#pragma once

#include <vector>

#include "report/figures.h"
#include "report/study.h"

namespace olrank {

/// Width ratios by round and by width of the network, false certainty against α, cost against width; those
/// that the study has numbers for.
std::vector<ReportFigure> study_figures(const Study& study);

}  // namespace olrank
