#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace olrank {

/// LaTeX tables (booktabs) of offline and online NDCG with their intervals, and below each value the paired
/// difference from the baseline. A table with one user fits a column; those of several users, side by side,
/// span the page. `users` holds the users of each table; empty: a table for each user. Throws
/// InvalidArgument at an unknown user.
std::string report_latex(const Report& report, const std::vector<std::vector<std::string>>& users = {});

}  // namespace olrank
