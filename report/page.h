#pragma once

#include <string>

#include "report/comparison.h"

namespace olrank {

/// The whole report as one HTML page that needs nothing else: no network, no scripts, light and dark,
/// printable, readable on a phone.
std::string report_page(const Report& report);

/// What has not finished, a line a group of trials: "pairrank, perfect, fold 1: seeds 3 to 5".
std::vector<std::string> missing_lines(const ExperimentResults& experiment);

}  // namespace olrank
