#pragma once

#include <cstdint>
#include <span>

#include "core/runtime/scratch.h"

namespace olrank {

/// Puts the documents of one query in order of descending score, ties by index: order[rank] is a document.
/// −0 and +0 tie; infinities are scores like others. Returns the first document whose score is not a
/// number, or −1 when all are; the order is not written in the first case.
std::int64_t order_by_score(std::span<const float> scores, std::span<std::int32_t> order, Scratch& scratch);
std::int64_t order_by_score(std::span<const double> scores, std::span<std::int32_t> order,
                            Scratch& scratch);

/// Finds only the first order.size() ranks; the rest is not sorted.
std::int64_t order_top_by_score(std::span<const float> scores, std::span<std::int32_t> order,
                                Scratch& scratch);
std::int64_t order_top_by_score(std::span<const double> scores, std::span<std::int32_t> order,
                                Scratch& scratch);

}  // namespace olrank
