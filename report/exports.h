#pragma once

#include <filesystem>
#include <string>

#include "report/comparison.h"

namespace olrank {

/// Every final figure and every point of every mean curve, a line each:
/// data,clicks,ranker,figure,round,mean,low,high,trials,units,best,not_worse. Final figures have no round.
std::string report_csv(const Report& report);

/// The same with pairs of rankers, warnings and missing trials.
std::string report_json(const Report& report);

/// A table in the papers' layout for LaTeX with booktabs: a block of rows a data set, a group of columns a
/// user, offline and online figures; the best bold, those not significantly worse underlined.
std::string report_latex(const Report& report);

/// Writes each figure of each user into `folder` as SVG, and the numbers behind it as CSV beside it.
/// Returns how many figures these are.
std::size_t write_figures(const Report& report, const std::filesystem::path& folder);

}  // namespace olrank
