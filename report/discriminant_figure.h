#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "report/discriminant.h"
#include "report/plot.h"

namespace olrank {

/// Documents in their discriminant plane, coloured by grade, and the mean of each grade: Jia and Wang, WWW
/// 2022, Figure 3. Of many documents it shows evenly chosen ones; those far from all others are left out.
Plot discriminant_figure(const Discriminant& discriminant, std::span<const std::uint8_t> grades,
                         const std::string& source);

}  // namespace olrank
