#pragma once

#include <string>

#include "report/page.h"
#include "report/study.h"

namespace olrank {

/// The study's section of a page: its answer, three figures and a table of paired differences for each
/// user, and the other figures folded away.
void add_study(Page& page, const Study& study, const std::string& label);

}  // namespace olrank
