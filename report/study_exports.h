#pragma once

#include <string>

#include "report/study.h"

namespace olrank {

/// Everything that the study found, with its plan: read_study_plan() reads that back.
std::string study_json(const Study& study);

/// One line a user, ranker and figure: the mean, and the paired difference from the exact structure.
std::string study_csv(const Study& study);

/// The tables of a terminal.
std::string study_text(const Study& study);

}  // namespace olrank
