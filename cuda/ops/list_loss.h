#pragma once

#include <cstdint>

#include "core/ops/list_loss.h"
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

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
