#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/covariance/covariance_checks.h"
#include "core/io/state_archive.h"
#include "core/runtime/execution_context.h"
#include "models/posterior/posterior.h"

namespace olrank {

/// A = λI + Σ_s g_s g_sᵀ over observed pairs of a linear ranker, whose gradients are feature vectors: the
/// primal form of docs/MATH.md, in double. Where it loses its digits, as by features of very different
/// scale, it goes on with a Cholesky factor of A that takes pairs in by rotations.
class RowCovariance : public Stateful {
 public:
  RowCovariance(Covariance structure, std::int64_t features, double lambda);

  Covariance structure() const { return structure_; }

  /// width_sq[i, j] = ‖g_i − g_j‖²_{A⁻¹} of V documents with rows [V × features]; [V × V]. With
  /// M = G A⁻¹ Gᵀ it is M_ii + M_jj − 2 M_ij: V quadratic forms, never V² of them.
  void width_sq(ExecutionContext& context, std::span<const double> rows, std::int64_t docs,
                std::span<double> width_sq) const;

  /// Adds the pairs whose gradients are `rows` [pairs × features]. NumericError, with nothing changed, if
  /// they are not finite or A has lost its digits.
  void observe(ExecutionContext& context, std::span<const double> rows, std::int64_t pairs);

  /// log(det A / det λI).
  double log_det() const { return log_det_; }

  /// See core/covariance/covariance_checks.h. Warns once if it is beyond the bound.
  double drift() const;
  bool is_root() const { return updates_ == kRoot; }

  void fields(StateFields& state) override;

 private:
  static constexpr std::int64_t kRoot = -1;

  CovarianceName name() const {
    return {structure_ == Covariance::kFull ? "full" : "inverse", -1, lambda_};
  }
  void width_sq_by_root(ExecutionContext& context, std::span<const double> rows, std::int64_t docs,
                        std::span<double> width_sq) const;
  /// Adds pairs, with checks; false, with the covariance spoiled, if it has lost its digits.
  bool take_in(ExecutionContext& context, std::span<const double> rows, std::int64_t pairs, bool renews);
  void add_to_matrix(std::span<const double> rows, std::int64_t pairs);
  void update_inverse(ExecutionContext& context, std::span<const double> rows, std::int64_t pairs);
  void renew_inverse();
  void become_root();
  void add_to_root(std::span<const double> rows, std::int64_t pairs);
  double measured_drift() const;
  /// width_error() along v.
  double error_along(std::span<const double> v) const;
  /// product = A y.
  void multiply_matrix(std::span<const double> y, std::vector<double>& product) const;
  bool needs_inverse() const {
    return structure_ == Covariance::kFull || structure_ == Covariance::kDiagonalOfInverse;
  }

  Covariance structure_;
  std::int64_t features_;
  double lambda_;
  std::vector<double> matrix_;    // A, [features × features]; only where an inverse is kept; or L
  std::vector<double> inverse_;   // A⁻¹, or L⁻¹
  std::vector<double> diagonal_;  // of A
  std::int64_t updates_ = 0;      // pairs since the inverse was last computed from A; kRoot: L, not A
  double log_det_ = 0.0;
  DriftWarning warning_;
};

}  // namespace olrank
