#pragma once

#include <cstdint>
#include <span>

#include "core/runtime/execution_context.h"
#include "recommend/trees/pair_source.h"
#include "recommend/trees/split_search.h"

namespace olrank {

/// Adds its personal term to the factor of each row that has data: u_i = u_leaf + ũ_i, where ũ_i minimises
/// Jia, Toward Reliable Decision-making in Information Systems, PhD thesis, UVA 2022, Eq. (4.2.2) with the
/// tree's factors fixed. Users have nothing in common and are fitted in parallel, items one after the
/// other, since pairs tie them together. Returns λ Σ‖ũ_i‖².
double add_user_terms(ExecutionContext& context, const SplitData& data, std::span<const std::int32_t> rows,
                      const PairSource* pairs, double penalty, const DescentSettings& descent,
                      FactorRows& factors);
double add_item_terms(const SplitData& data, std::span<const std::int32_t> rows, const PairSource* pairs,
                      double penalty, const DescentSettings& descent, FactorRows& factors);

}  // namespace olrank
