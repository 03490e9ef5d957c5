#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/online/online_ranker.h"

namespace olrank {

/// What decided about shown documents and what exact widths say of them; squared widths are [n × n].
struct ShownWidths {
  CertaintyRule rule;
  std::span<const double> scores;
  std::span<const double> own_sq;
  std::span<const double> exact_sq;
};

/// `ratios` are own over exact widths of the pairs that have an exact width: documents with the same
/// features have none. Returns how many decisions on all pairs exact widths would turn.
Tally compare_widths(const ShownWidths& shown, std::vector<double>& ratios);

}  // namespace olrank
