#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/figures.h"
#include "report/study.h"

namespace olrank {

/// The study's section of a page: its answer, three figures and a table of paired differences for each
/// user, and the other figures folded away. `draw` writes figures of a page, with the class of their frame.
std::string study_section(const Study& study, const std::string& label,
                          const std::function<std::string(const std::vector<ReportFigure>& figures,
                                                          const std::string& frame)>& draw);

}  // namespace olrank
