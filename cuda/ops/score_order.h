#pragma once

#include <cstdint>

#include "cuda/runtime/stream.h"

// Orders by score, and what they are worth, for ragged queries side by side. `offsets` [queries + 1] are
// documents before each query; all arrays lie on the device.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Puts the documents of every query in order of descending score, ties by index: order [docs] counts from
/// the query's first document. first_bad [queries], where it is not null, gets the first document whose
/// score is not a number, or −1; such a query's order is not to be used.
void order_by_score(Stream stream, std::int64_t queries, const std::int64_t* offsets, const float* scores,
                    std::int32_t* order, std::int32_t* first_bad);

/// mean [docs] of scores [members × docs], in double, rounded once.
void mean_scores(Stream stream, std::int64_t members, std::int64_t docs, const float* scores, float* mean);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
