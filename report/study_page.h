#pragma once

#include <string>

#include "report/page_results.h"
#include "report/study.h"

namespace olrank {

/// The study's section of a page: its answer, three figures and a table of paired differences for each
/// user, and the other figures folded away.
std::string study_section(const Study& study, const std::string& label, const DrawFigures& draw);

}  // namespace olrank
