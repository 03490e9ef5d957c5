#pragma once

#include <string>

#include "report/comparison.h"

namespace olrank {

/// Every final value and every point of every mean curve, one line each:
/// data,clicks,ranker,figure,round,mean,low,high,trials,units,best,not_worse. Final values have no round.
std::string report_csv(const Report& report);

/// The same, with tests of ranker pairs, warnings and missing trials.
std::string report_json(const Report& report);

}  // namespace olrank
