#pragma once

#include <cstdint>
#include <span>

#include "core/random/rng_stream.h"
#include "core/runtime/scratch.h"

namespace olrank {

/// A list that takes, at each rank, with probability ε a uniformly random remaining document and otherwise
/// the best remaining one. `best_first` is the order by score; the coins lie at (round, 0, rank).
/// `propensity` receives that of each rank, as in RankedList. O(V).
void epsilon_greedy_list(std::span<const std::int32_t> best_first, double epsilon, PhiloxKey key,
                         std::uint32_t round, Scratch& scratch, std::span<std::int32_t> list,
                         std::span<double> propensity);

}  // namespace olrank
