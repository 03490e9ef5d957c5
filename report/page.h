#pragma once

#include <string>

#include "report/comparison.h"

namespace olrank {

/// The report as one self-contained HTML page: no network, no scripts; light and dark mode; readable in
/// print and on a phone.
std::string report_page(const Report& report);

/// Unfinished trials, one line per group: "pairrank, perfect, fold 1: seeds 3 to 5 not started".
std::vector<std::string> missing_lines(const ExperimentResults& experiment);

}  // namespace olrank
