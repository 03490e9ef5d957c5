#pragma once

#include <cstdint>
#include <string>

#include "report/study.h"

namespace olrank {

/// The study's results and its plan, which read_study_plan() reads back.
std::string study_json(const Study& study);

/// One line per user, ranker and measure: the mean, and the paired difference from the exact structure.
std::string study_csv(const Study& study);

/// Findings and tables for a terminal of this width; 0 is no limit.
std::string study_text(const Study& study, std::int64_t columns);

}  // namespace olrank
