#pragma once

#include <cstdint>

#include "cuda/runtime/stream.h"

// The arithmetic of drift checks around products and solves: core/covariance/covariance_checks.h. All
// arrays are on the device; sums have a fixed order.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// A number for each pair and each column.
struct PairColumns {
  double* values = nullptr;
  std::int64_t by_pair = 1;  // from a pair's number to the next one's
  std::int64_t by_column = 1;
};

/// of_pairs = factor · (of_docs of the winner − of_docs of the loser), of_docs [columns × 2 · pairs].
void pair_differences(Stream stream, std::int64_t pairs, std::int64_t columns, const double* of_docs,
                      double factor, const PairColumns& of_pairs);
/// of_docs [columns × 2 · pairs] = of_pairs for winners, −of_pairs for losers.
void pair_weights(Stream stream, std::int64_t pairs, std::int64_t columns, const PairColumns& of_pairs,
                  double* of_docs);

/// y [count] ← (v − factor · y)/λ.
void finish_solutions(Stream stream, std::int64_t count, const double* v, double factor, double lambda,
                      double* y);

/// The arguments of width_error().
struct DriftFigure {
  double width_sq = 0.0;
  double v_y = 0.0;
  double y_a_y = 0.0;
};

/// Vectors v and then gradients of observed pairs, with y ≈ A⁻¹v.
struct DriftColumns {
  std::int64_t parameters = 0;
  std::int64_t vectors = 0;
  std::int64_t pairs = 0;
  const double* v = nullptr;    // [vectors + pairs × parameters]
  const double* own = nullptr;  // [vectors × parameters], A⁻¹v whose widths are checked
  const double* m = nullptr;  // [2 · pairs × 2 · pairs], M of the pairs' documents, which is checked too
  const double* y = nullptr;  // [vectors + pairs × parameters]
  // yᵀAy = λ yᵀy + factor · Σ left · right.
  std::int64_t rows = 0;
  const double* left = nullptr;  // [rows × vectors + pairs]
  const double* right = nullptr;
  double lambda = 1.0;
  double factor = 1.0;
  double scale = 1.0;
};

/// figures [vectors + pairs].
void drift_figures(Stream stream, const DriftColumns& columns, DriftFigure* figures);

}  // namespace olrank::OLRANK_DEVICE_NAMESPACE
