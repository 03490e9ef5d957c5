#pragma once

#include <cstdint>

#include "core/ops/pair_training.h"
#include "cuda/runtime/stream.h"

// LambdaRank's weights on the device: ndcg_change() of every observed pair, summed per term. All arrays are
// on the device.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// The examined lists that the pairs came from.
struct ImpressionView {
  std::int64_t count = 0;
  const std::int32_t* first_doc = nullptr;   // [count + 1], into rows and clicks
  const std::int32_t* first_pair = nullptr;  // [count + 1], into the observations
  const std::int32_t* rows = nullptr;        // documents of the history
  const std::uint8_t* clicks = nullptr;
  const std::int64_t* doc_numbers = nullptr;  // [docs of the history]; ties break by them
  const double* discounts = nullptr;          // of all ranks of the longest list, filled by the host
};

/// Groups observations by term, in order. The workspace takes terms + observations 32-bit words.
void group_observations(Stream stream, const PairObservation* observations, std::int64_t count,
                        std::int64_t terms, std::int32_t* workspace, std::int32_t* offsets,
                        std::int32_t* items);

/// weights, labels [members × terms] of the terms at the members' scores [members × docs]; changes [members
/// × observations] is an intermediate result. offsets and items come from group_observations().
void ndcg_weights(Stream stream, const ImpressionView& impressions, const PairObservation* observations,
                  std::int64_t observation_count, std::int64_t terms, const std::int32_t* offsets,
                  const std::int32_t* items, std::int64_t members, std::int64_t docs, const float* scores,
                  double* changes, double* weights, double* labels);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
