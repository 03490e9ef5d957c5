#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/io/state_archive.h"
#include "core/ops/folded_pair_gradient.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// Σ_s count_s σ(z_s)(1 − σ(z_s)) row_s row_sᵀ [stride × stride], the Hessian of the summed cross-entropy
/// of `pairs` at θ, and its gradient.
void pair_hessian(ExecutionContext& context, const FoldedPairs& pairs, std::span<const double> theta,
                  std::span<double> gradient, std::span<double> hessian);

/// The summed cross-entropy of a history to second order around θ_ref. Pairs that come and go change it
/// without a pass over the others.
class HistoryExpansion {
 public:
  explicit HistoryExpansion(std::int64_t stride) : stride_(stride) {}

  bool empty() const { return centre_.empty(); }
  void clear();
  /// Around `theta`, of all pairs.
  void set(ExecutionContext& context, const FoldedPairs& pairs, std::span<const double> theta);
  /// Takes in pairs of one row; with negative numbers it takes them out. Returns the curvature that they
  /// add, in units of row · rowᵀ.
  double add(const double* row, double count, double first_wins);

  std::span<const double> centre() const { return centre_; }    // θ_ref
  std::span<const double> hessian() const { return hessian_; }  // at θ_ref, without a prior
  /// gradient += ∇ at θ_ref + H (θ − θ_ref).
  void add_gradient(std::span<const double> theta, std::span<double> gradient) const;

  void save(StateWriter& state) const;
  void load(StateReader& state);

 private:
  std::int64_t stride_;
  std::vector<double> centre_;    // empty before the first set()
  std::vector<double> gradient_;  // at θ_ref
  std::vector<double> hessian_;
};

}  // namespace olrank
