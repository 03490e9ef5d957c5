#pragma once

#include <string>

#include "report/report.h"

namespace olrank {

/// The report as one self-contained HTML page without scripts.
std::string report_page(const Report& report);

}  // namespace olrank
