#pragma once

#include <filesystem>
#include <string>

#include "report/comparison.h"

namespace olrank {

/// Every final value and every point of every mean curve, one line each:
/// data,clicks,ranker,figure,round,mean,low,high,trials,units,best,not_worse. Final values have no round.
std::string report_csv(const Report& report);

/// The same, with tests of ranker pairs, warnings and missing trials.
std::string report_json(const Report& report);

/// A LaTeX table (booktabs) in the papers' layout: a block of rows per data set, a group of columns per
/// user with offline and online NDCG; the best value bold, values not significantly worse underlined.
std::string report_latex(const Report& report);

/// Writes each figure of each user to `folder`, as SVG and with its numbers as CSV. Returns the number of
/// figures.
std::size_t write_figures(const Report& report, const std::filesystem::path& folder);

}  // namespace olrank
