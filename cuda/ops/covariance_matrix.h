#pragma once

#include <cstdint>

#include "core/online/online_ranker.h"
#include "core/ops/tangent_factors.h"
#include "cuda/ops/inverse_covariance.h"

// The matrices behind a full covariance, from all observed pairs at once, for a library to factorise: in
// double, row-major, their lower triangles. Pair s is the rows 2s (winner) and 2s + 1 (loser) of `pairs`.
namespace olrank::OLRANK_DEVICE_NAMESPACE {

/// Doubles of workspace of pair_kernel().
std::int64_t pair_kernel_workspace(std::int64_t n);

/// b [n × n] = λI + scale · (g_s·g_t).
void pair_kernel(Stream stream, const TangentShape& shape, const FactorRows& pairs, double scale,
                 double lambda, double* workspace, double* b);

/// Doubles of workspace of pair_covariance().
std::int64_t pair_covariance_workspace(std::int64_t parameters);

/// a [p × p] = λI + scale · Σ g_s g_sᵀ, both triangles.
void pair_covariance(Products& products, const TangentShape& shape, const FactorRows& pairs, double scale,
                     double lambda, double* workspace, double* a);

/// The status of a covariance whose matrix has the factor l [n × n]: the log of its determinant over λⁿ, or
/// `failed` if that is not finite.
void status_of_factor(Stream stream, std::int64_t n, const double* l, double lambda,
                      CovarianceStatus* status);

/// Row blocks of inverse_factor.h from L⁻¹ [n × n], whose rows are `stride` numbers apart, with zeros above
/// the diagonal.
void pack_factor(Stream stream, std::int64_t n, const double* inverse, std::int64_t stride, double* factor);

/// to [rows × columns] ← from, rows `stride` numbers apart in each; with `lower` zeros go above the
/// diagonal, and both may be the same matrix.
struct PlacedMatrix {
  const double* values = nullptr;
  std::int64_t stride = 0;
};
void copy_matrix(Stream stream, std::int64_t rows, std::int64_t columns, const PlacedMatrix& from,
                 double* to, std::int64_t stride, bool lower = false);

// The device version of core/ops/covariance.h. In addition to A's diagonal, callers keep
// root[k] = √(scale/A_kk) for widths.

struct DiagonalState {
  double* diagonal = nullptr;  // [p], A_kk
  double* root = nullptr;      // [p]
};

/// A = λI.
void reset_diagonal(Stream stream, const TangentShape& shape, double lambda, double scale,
                    const DiagonalState& state);

/// A_kk += scale · Σ_s g_{s,k}² over pairs [count] of documents of `rows`, pairs in order.
void add_to_diagonal(Stream stream, const TangentShape& shape, const FactorRows& rows,
                     const PreferencePair* pairs, std::int64_t count, double scale,
                     const DiagonalState& state);

/// Workspace of diagonal_gram(), in doubles.
std::int64_t diagonal_gram_workspace(const TangentShape& shape, std::int64_t docs);

/// m [docs × docs] (lower triangle) = Σ_k root[k]² g_ik g_jk, in double on tensor cores.
void diagonal_gram(Stream stream, const TangentShape& shape, const FactorRows& rows, const double* root,
                   double* workspace, double* m);

// The arithmetic of drift checks around products and solves: core/covariance/covariance_checks.h. All
// arrays are on the device; sums have a fixed order.

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
