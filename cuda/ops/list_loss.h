#pragma once

#include <cstdint>

#include "core/ops/list_loss.h"
#include "core/ops/pair_training.h"
#include "cuda/runtime/stream.h"

// The device version of core/ops/list_loss.h, for ragged queries side by side. All arrays are on the
// device.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Queries whose lists lie one after the other, as in olrank::list_losses().
struct GradedLists {
  std::int64_t queries = 0;
  std::int64_t docs = 0;                    // of all queries
  const std::int64_t* list_ends = nullptr;  // [queries]
  const std::uint8_t* grades = nullptr;     // [docs]
  const double* discounts = nullptr;        // kLog2 of all ranks of the longest list, filled by the host;
                                            // for kLambdaRank alone
  const double* weights = nullptr;  // [queries] that losses and slopes are multiplied by; null: none
};

/// losses [queries], and slopes [docs] of the scores [docs]. The workspace takes `docs` doubles. Results
/// are the CPU's but for rounding, and have the same bits in every run. kSmoothDcg is that of one rank.
void list_losses(Stream stream, const ListLossForm& form, const GradedLists& lists, const float* scores,
                 double* workspace, double* losses, double* slopes);

// LambdaRank's weights on the device: ndcg_change() of every observed pair, summed per term. All arrays are
// on the device.

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
