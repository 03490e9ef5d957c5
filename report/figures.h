#pragma once

#include <string>
#include <vector>

#include "report/comparison.h"
#include "report/drawing.h"
#include "report/figure_notes.h"
#include "report/final_tables.h"

namespace olrank {

/// What a page shows together: the answers, and under a fold each of the others.
enum class FigureGroup { kMain, kQuality, kCertainty, kTime };

struct ReportFigure {
  std::string slug;  // used in file names
  Drawing drawing;
  std::string caption;  // one or two sentences
  std::string csv;      // the numbers behind it
  FigureGroup group = FigureGroup::kMain;
};

/// Every figure that the user's trials have data for.
std::vector<ReportFigure> figures_of(const Report& report, const DataResults& data, const UserResults& user,
                                     const FinalTable& table);

}  // namespace olrank
