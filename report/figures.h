#pragma once

#include <string>
#include <vector>

#include "report/comparison.h"
#include "report/drawing.h"
#include "report/final_tables.h"

namespace olrank {

struct ReportFigure {
  std::string slug;  // names its files
  Drawing drawing;
  std::string caption;  // a sentence below it
  std::string csv;      // the numbers behind it
};

/// Figures hold no more rankers than this; of more, the best by the offline figure.
inline constexpr std::size_t kMostRankers = 12;

/// All rankers of the user, or the best, in the fixed order.
std::vector<const RankerTrials*> shown_rankers(const UserResults& user);

/// Every figure that the user's trials have numbers for.
std::vector<ReportFigure> figures_of(const Report& report, const DataResults& data, const UserResults& user,
                                     const FinalTable& table);

/// What the bands of line figures are, or why there are none.
std::string band_note(const UserResults& user);

/// Rounds from which on a mean curve is over fewer trials than before, a sentence each: an unfinished or
/// damaged trial ends there.
std::vector<std::string> thinning_notes(const Report& report, const UserResults& user);

}  // namespace olrank
