#pragma once

#include <cstdint>

#include "cuda/runtime/stream.h"

// The device version of core/metrics/list_metrics.h, for ragged queries side by side. `offsets`
// [queries + 1] are the numbers of documents before each query. All arrays are on the device.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Sorts the documents of every query by comes_before(); order [docs] counts from the query's first
/// document. first_bad [queries], unless null, receives the first document whose score is not a number, or
/// −1. Such documents come last, by index.
void order_by_score(Stream stream, std::int64_t queries, const std::int64_t* offsets, const float* scores,
                    std::int32_t* order, std::int32_t* first_bad);

/// mean [docs] of scores [members × docs], computed in double and rounded once.
void mean_scores(Stream stream, std::int64_t members, std::int64_t docs, const float* scores, float* mean);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
