#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "jobs/settings/search_settings.h"
#include "jobs/settings/sweep_axis.h"

namespace olrank {

/// The values of one point, one an axis.
using SweepValues = std::vector<std::pair<std::string, SettingValue>>;

/// Values drawn from the axes, `search.draws` times; repetitions are left out. The value of an axis in draw
/// i depends on the seed, its key and i alone: other axes, other rankers and more draws change nothing.
/// Numbers of a range have three significant digits.
std::vector<SweepValues> draw_values(const std::vector<SweepAxis>& axes, const SearchSettings& search);

}  // namespace olrank
