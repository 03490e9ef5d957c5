#pragma once

#include <cstdint>
#include <string>

#include "report/experiment_results.h"

namespace olrank {

/// summary.csv: one line per trial; equal results give equal bytes.
std::string summary_csv(const TrialList& trials);

/// A table of means for each ranker and user, each ± half the width of its 95 % t interval over trials. At
/// most `columns` wide unless 0: names are shortened, then columns are dropped: rounds/s, trials, wrong,
/// certain, online.
std::string summary_text(const TrialList& trials, const ResultConventions& about, std::int64_t columns = 0);
/// Writes the means as JSON, with the conventions in every row.
std::string summary_means_json(const TrialList& trials, const ResultConventions& about);

}  // namespace olrank
