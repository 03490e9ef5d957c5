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

/// What lists are judged by: tables that the host filled, so that figures have its bits.
struct GainTables {
  const double* gains = nullptr;          // of every grade
  const double* discounts = nullptr;      // of the ranks up to the last cutoff
  const std::int32_t* cutoffs = nullptr;  // rising
  std::int64_t cutoff_count = 0;
  std::int64_t last_cutoff = 0;
};

/// dcg [queries × cutoffs] of the lists that the scores make, summed in the order of ranks. `grades` are
/// those of the documents; first_bad as above, where the DCG is not to be used.
void dcg_by_score(Stream stream, std::int64_t queries, const std::int64_t* offsets, const float* scores,
                  const std::uint8_t* grades, const GainTables& tables, double* dcg,
                  std::int32_t* first_bad);

/// mean [docs] of scores [members × docs], in double, rounded once.
void mean_scores(Stream stream, std::int64_t members, std::int64_t docs, const float* scores, float* mean);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
