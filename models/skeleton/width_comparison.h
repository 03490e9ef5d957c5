#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/online/online_ranker.h"

namespace olrank {

/// The scores and own squared widths that decided about shown documents, and their exact squared widths; [n
/// × n].
struct ShownWidths {
  CertaintyRule rule;
  std::span<const double> scores;
  std::span<const double> own_sq;
  std::span<const double> exact_sq;
};

/// Fills `ratios` with own width over exact width of each pair whose exact width is not 0, as it is for
/// documents with the same features. Returns how many decisions on all pairs exact widths would reverse.
Tally compare_widths(const ShownWidths& shown, std::vector<double>& ratios);

}  // namespace olrank
