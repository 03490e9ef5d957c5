#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/explore/order_bits.h"

namespace olrank {

/// Bit (b, a) of `columns` is set where place a is certainly before place b: the orders transposed.
void transpose(const OrderBits& orders, OrderBits& columns);

/// The certain orders that a list violates: those whose second place comes before the first. `list` has
/// places of the order by score.
std::int64_t count_violated(const OrderBits& orders, std::span<const std::int32_t> list,
                            std::vector<std::uint64_t>& placed);

}  // namespace olrank
