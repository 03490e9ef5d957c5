#pragma once

#include <cstdint>
#include <string>

#include "report/study.h"

namespace olrank {

/// Findings and tables for a terminal of this width; 0 is no limit.
std::string study_text(const Study& study, std::int64_t columns);

}  // namespace olrank
