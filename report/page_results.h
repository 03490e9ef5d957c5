#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/comparison.h"
#include "report/figures.h"

namespace olrank {

/// Writes figures of a page; the second argument is the class of their frame.
using DrawFigures =
    std::function<std::string(const std::vector<ReportFigure>& figures, const std::string& frame)>;

/// What the report says about each user, in a sentence or two: the top of a page.
std::string headlines_section(const Report& report);

/// The page's section about one user: what the results say, final values with tests, and curves.
std::string user_section(const Report& report, const DataResults& data, const UserResults& user,
                         const DrawFigures& draw);

}  // namespace olrank
