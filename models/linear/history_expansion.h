#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/io/state_fields.h"
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

  void fields(StateFields& state);

 private:
  std::int64_t stride_;
  std::vector<double> centre_;    // empty before the first set()
  std::vector<double> gradient_;  // at θ_ref
  std::vector<double> hessian_;
};

/// The gradient of Q(θ) + Σ_sample weight_s (ℓ_s(θ) − ℓ_s to second order around θ_ref) + c/2 ‖θ‖², Q being
/// an expansion around θ_ref. Where each pair of the history is drawn with a probability proportional to
/// 1/weight, its mean over draws is the gradient of the history's loss: the sample corrects Q.
class SampledGradient {
 public:
  /// `count` of the sample are the weights; `first_wins` is not read. Takes its memory from the context's
  /// scratch.
  SampledGradient(ExecutionContext& context, const HistoryExpansion& expansion, const FoldedPairs& sample,
                  double ridge);

  void operator()(std::span<const double> theta, std::span<double> gradient) const;

 private:
  void score(std::span<const double> theta, std::span<double> z) const;

  ExecutionContext& context_;
  const HistoryExpansion& expansion_;
  FoldedPairs sample_;
  double ridge_;
  // The slope of a pair's second-order form is linear in its score difference: slope + curvature · z.
  std::span<double> slope_;
  std::span<double> curvature_;
  std::span<double> labels_;
};

}  // namespace olrank
