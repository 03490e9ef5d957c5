#pragma once

#include <string>

#include "report/report.h"
#include "report/study.h"

namespace olrank {

/// Every final value and every point of every mean curve, one line each:
/// data,clicks,ranker,figure,round,mean,low,high,trials,units,best,not_worse. Final values have no round.
std::string report_csv(const Report& report);

/// Adds tests of ranker pairs, warnings and missing trials to what the CSV has.
std::string report_json(const Report& report);

/// The study's results and its plan, which read_study_plan() reads back.
std::string study_json(const Study& study);

/// One line per user, ranker and measure: the mean, and the paired difference from the exact structure.
std::string study_csv(const Study& study);

}  // namespace olrank
