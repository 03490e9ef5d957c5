#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/io/state_archive.h"
#include "core/ops/folded_pair_gradient.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// The result of a linear training.
struct NewtonReport {
  std::int64_t steps = 0;
  double gradient_norm = 0.0;  // ‖∇F‖ where it stopped
  double optimality_gap = 0.0;  // F(θ) − min F is at most this: ‖∇F‖²/2c, F being c-strongly convex
};

/// Minimises F(θ) = Σ_s cross-entropy(z_s) + c/2 ‖θ‖² by Newton's method, warm-started, with an inverse
/// Hessian that is kept from round to round and recomputed when a step no longer shrinks the gradient
/// enough: most rounds cost a few passes over the history and no factorisation.
class NewtonTrainer {
 public:
  struct Options {
    double tolerance = 1e-6;      // of ‖∇F‖/max(1, n)
    std::int64_t max_steps = 50;  // per round
  };

  NewtonTrainer(std::int64_t stride, const Options& options);

  /// `observed` is n, with repetitions; `ridge` is c > 0. Throws NumericError, with the parameters
  /// as they were, if no step keeps the gradient finite.
  NewtonReport train(ExecutionContext& context, const FoldedPairs& pairs, std::int64_t observed,
                     double ridge);

  std::span<const double> theta() const { return theta_; }  // padded with zeros
  /// Returns to parameters of an earlier training.
  void restore(std::span<const double> theta);

  void save(StateWriter& state) const;
  void load(StateReader& state);

 private:
  NewtonReport descend(ExecutionContext& context, const FoldedPairs& pairs, std::int64_t observed,
                       double ridge);
  void factor_hessian();
  void gradient_at(ExecutionContext& context, const FoldedPairs& pairs, double ridge,
                   std::span<const double> theta, std::span<double> gradient);
  void renew_inverse_hessian(ExecutionContext& context, const FoldedPairs& pairs, double ridge);

  std::int64_t stride_;
  Options options_;
  std::vector<double> theta_;
  std::vector<double> inverse_hessian_;  // [stride × stride], at some earlier θ; empty before the first
  std::vector<double> gradient_;
  std::vector<double> trial_theta_;
  std::vector<double> trial_gradient_;
  std::vector<double> step_;
};

}  // namespace olrank
