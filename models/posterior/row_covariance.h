#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/io/state_archive.h"
#include "core/runtime/execution_context.h"
#include "models/posterior_settings.h"

namespace olrank {

/// A = λI + Σ_s g_s g_sᵀ over observed pairs of a linear ranker, whose gradients are feature vectors: the
/// primal form of docs/MATH.md, in double.
class RowCovariance {
 public:
  RowCovariance(Covariance structure, std::int64_t features, double lambda);

  Covariance structure() const { return structure_; }

  /// width_sq[i, j] = ‖g_i − g_j‖²_{A⁻¹} of V documents with rows [V × features]; [V × V]. With
  /// M = G A⁻¹ Gᵀ it is M_ii + M_jj − 2 M_ij: V quadratic forms, never V² of them.
  void width_sq(ExecutionContext& context, std::span<const double> rows, std::int64_t docs,
                std::span<double> width_sq) const;

  /// Adds the pairs whose gradients are `rows` [pairs × features].
  void observe(ExecutionContext& context, std::span<const double> rows, std::int64_t pairs);

  /// log(det A / det λI).
  double log_det() const { return log_det_; }

  /// ‖A A⁻¹ v − v‖/‖v‖ of a random vector: the drift of the incremental inverse.
  double drift() const;

  void save(StateWriter& state) const;
  void load(StateReader& state);

 private:
  void update_inverse(ExecutionContext& context, std::span<const double> rows, std::int64_t pairs);
  void renew_inverse();
  bool needs_inverse() const {
    return structure_ == Covariance::kFull || structure_ == Covariance::kDiagonalOfInverse;
  }

  Covariance structure_;
  std::int64_t features_;
  double lambda_;
  std::vector<double> matrix_;    // A, [features × features]; only where an inverse is kept
  std::vector<double> inverse_;   // A⁻¹
  std::vector<double> diagonal_;  // of A
  std::int64_t updates_ = 0;      // pairs since the inverse was last computed from A
  double log_det_ = 0.0;
};

}  // namespace olrank
