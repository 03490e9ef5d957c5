#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/final_tables.h"
#include "report/plot.h"
#include "report/report.h"

namespace olrank {

/// Figures show at most this many rankers: the best by offline NDCG.
inline constexpr std::size_t kMostRankers = 12;

/// The user's rankers that figures show, in the report's order.
std::vector<const RankerTrials*> shown_rankers(const UserResults& user);

/// The ranker that figures take differences against; null where there is nothing to compare.
const RankerTrials* baseline_of(const Report& report, const UserResults& user, const FinalTable& table);

/// A page shows the figures of a group together: the answers, and under a fold each of the others.
enum class FigureGroup { kMain, kQuality, kCertainty, kTime };

struct ReportFigure {
  std::string slug;  // used in file names
  Drawing drawing;
  std::string caption;  // one or two sentences
  std::string csv;      // the numbers behind it
  FigureGroup group = FigureGroup::kMain;
};

ReportFigure figure_of(std::string slug, const Plot& plot, std::string caption,
                       FigureGroup group = FigureGroup::kMain);

/// Every figure that the user's trials have data for.
std::vector<ReportFigure> figures_of(const Report& report, const DataResults& data, const UserResults& user,
                                     const FinalTable& table);

}  // namespace olrank
