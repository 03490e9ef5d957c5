#pragma once

#include <string>
#include <vector>

#include "report/comparison.h"
#include "report/drawing.h"
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

/// Figures show at most this many rankers: the best by offline NDCG.
inline constexpr std::size_t kMostRankers = 12;

/// The user's rankers that figures show, in the report's order.
std::vector<const RankerTrials*> shown_rankers(const UserResults& user);

/// Every figure that the user's trials have data for.
std::vector<ReportFigure> figures_of(const Report& report, const DataResults& data, const UserResults& user,
                                     const FinalTable& table);

/// What lines and bands show, or why there are no bands.
std::string band_note(const Report& report, const UserResults& user, const FinalTable& table);

/// A sentence for each round after which a mean curve covers fewer trials because unfinished or damaged
/// ones end there.
std::vector<std::string> thinning_notes(const Report& report, const UserResults& user);

}  // namespace olrank
