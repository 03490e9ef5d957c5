#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/runtime/execution_context.h"
#include "models/clickgp/click_belief.h"
#include "models/clickgp/click_memory.h"

namespace olrank {

/// The units that a network of products needs, at most as many as the belief has: the pairs of inputs whose
/// product has the steepest gradient of the likelihood, counted in its standard deviations, of those that
/// are steeper than noise would be. A unit that stays keeps its place and its centres.
///
/// The sites of `queries` are those that number `model` has found and solved.
std::vector<ClickProduct> find_products(ExecutionContext& context, const ClickBelief& belief,
                                        std::size_t model, std::span<const ClickMemory::Entry> queries);

}  // namespace olrank
