#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "jobs/tuning/sweep.h"
#include "jobs/tuning/winners.h"

namespace olrank {

/// tuning.csv: one line per grid point, or per grid point, fold and user.
std::string tuning_csv(const Configuration& configuration, const std::vector<GridPoint>& grid,
                       const std::vector<TriedPoint>& tried);

/// winners.csv: the chosen values with their means on the test set.
std::string winners_csv(const Configuration& configuration, const std::vector<Winner>& winners);

/// The winners as a text table with their results on the validation set, followed by notes. At most
/// `columns` wide unless 0: names are shortened, then columns are dropped.
std::string winners_text(const Configuration& configuration, const std::vector<Winner>& winners,
                         const ChoiceRule& rule, std::int64_t columns = 0);
/// The winners as JSON.
std::string winners_json(const Configuration& configuration, const std::vector<Winner>& winners,
                         const ChoiceRule& rule);

}  // namespace olrank
