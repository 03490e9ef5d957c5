#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/sweep.h"
#include "apps/winners.h"

namespace olrank {

/// tuning.csv: one line a grid point, and where each has its own choice, a fold and user.
std::string tuning_csv(const Configuration& configuration, const std::vector<GridPoint>& grid,
                       const std::vector<TriedPoint>& tried);

/// winners.csv: the chosen values with their means on the test part.
std::string winners_csv(const Configuration& configuration, const std::vector<Winner>& winners);

/// The same for people, with what the validation part gave and the notes below.
std::string winners_text(const Configuration& configuration, const std::vector<Winner>& winners,
                         const ChoiceRule& rule);
/// The same as JSON.
std::string winners_json(const Configuration& configuration, const std::vector<Winner>& winners,
                         const ChoiceRule& rule);

}  // namespace olrank
