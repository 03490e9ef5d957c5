#pragma once

#include <cstdint>
#include <span>

#include "core/explore/order_bits.h"
#include "core/math/certainty.h"
#include "core/runtime/scratch.h"

namespace olrank {

/// The certain orders by is_certain(). `by_score` are docs, best first; `width_sq` is w², [V × V] by docs.
void certain_by_width(const CertaintyRule& rule, std::span<const float> scores,
                      std::span<const std::int32_t> by_score, std::span<const double> width_sq,
                      OrderBits& orders);

/// i before j iff every member scores i above j by more than `least_difference`. `scores` is
/// [members × V], without NaN; `by_score` follows their mean.
void certain_by_vote(std::int64_t members, double least_difference, std::span<const float> scores,
                     std::span<const std::int32_t> by_score, OrderBits& orders, Scratch& scratch);

/// Adds a before c wherever a is before b and b before c.
void close_transitively(OrderBits& orders);

}  // namespace olrank
