#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/comparison.h"
#include "report/final_tables.h"

namespace olrank {

/// Figures show at most this many rankers: the best by offline NDCG.
inline constexpr std::size_t kMostRankers = 12;

/// The user's rankers that figures show, in the report's order.
std::vector<const RankerTrials*> shown_rankers(const UserResults& user);

/// The ranker that figures take differences against; null where there is nothing to compare.
const RankerTrials* baseline_of(const Report& report, const UserResults& user, const FinalTable& table);

/// What lines and bands show, or why there are no bands.
std::string band_note(const Report& report, const UserResults& user, const FinalTable& table);

/// A sentence for each round after which a mean curve covers fewer trials because unfinished or damaged
/// ones end there.
std::vector<std::string> thinning_notes(const Report& report, const UserResults& user);

}  // namespace olrank
