#pragma once

#include <cstdint>

#include "core/explore/certain_orders.h"
#include "core/ops/covariance.h"
#include "cuda/ops/inverse_covariance.h"
#include "cuda/runtime/stream.h"

// The device version of core/explore/certain_orders.h: certain orders from scores and widths, or from
// votes. Bits are those of OrderBits, [docs × OrderBits::words(docs)], all of them written. All arrays
// are on the device, including the rule and the health sums, so that a captured launch serves every
// round.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Sums of WidthHealth.
struct WidthHealthSums {
  unsigned long long negative = 0;
  unsigned long long lost = 0;
};

/// One query's documents, for certain orders by widths.
struct WidthedDocs {
  std::int64_t docs = 0;
  const float* scores = nullptr;
  const float* magnitudes = nullptr;  // of the scores: rounding_of_scores() of the largest decides no order
  const std::int32_t* by_score = nullptr;
  const double* m = nullptr;  // [docs × docs], lower triangle
};

/// Figures that a launch copies on its way into the answer of a query, so that they need no copies of their
/// own. All of them are on the device.
struct CarriedFigures {
  const CovarianceStatus* status = nullptr;
  CovarianceStatus* status_copy = nullptr;  // null: nothing is copied
  const double* outcome = nullptr;          // [outcomes]
  double* outcome_copy = nullptr;
  std::int64_t outcomes = 0;
};

/// Certain orders by is_certain(), from M by pair_width(). The rule's least difference is not read: it
/// follows from the magnitudes. `width_sq` [docs × docs], exactly symmetric, and `health`, which is added
/// to, may be null. Figures are carried even for a query without documents.
void certain_by_width(Stream stream, const WidthedDocs& query, const CertaintyRule* rule,
                      std::uint64_t* bits, double* width_sq, WidthHealthSums* health,
                      const CarriedFigures& carried = {});

/// Certain orders by the votes of `members`: scores and magnitudes are [members × docs], those of a member
/// `stride` after those of the one before.
void certain_by_vote(Stream stream, std::int64_t members, std::int64_t docs, std::int64_t stride,
                     const float* scores, const float* magnitudes, const std::int32_t* by_score,
                     std::uint64_t* bits, const CarriedFigures& carried = {});

/// rule->alpha = α_t at log_det [1]. Both pointers are to device memory.
void set_theory_alpha(Stream stream, const TheoryAlpha& theory, const double* log_det, CertaintyRule* rule);

/// log_det [1] = Σ_k log(diagonal[k]/λ), in a fixed order.
void diagonal_log_det(Stream stream, std::int64_t parameters, const double* diagonal, double lambda,
                      double* log_det);

// The device version of core/metrics/list_metrics.h, for ragged queries side by side. `offsets`
// [queries + 1] are the numbers of documents before each query. All arrays are on the device.

/// Sorts the documents of every query by comes_before(); order [docs] counts from the query's first
/// document. first_bad [queries], unless null, receives the first document whose score is not a number, or
/// −1. Such documents come last, by index.
void order_by_score(Stream stream, std::int64_t queries, const std::int64_t* offsets, const float* scores,
                    std::int32_t* order, std::int32_t* first_bad);

/// mean [docs] of scores [members × docs], computed in double and rounded once.
void mean_scores(Stream stream, std::int64_t members, std::int64_t docs, const float* scores, float* mean);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
