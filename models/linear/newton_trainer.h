#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/io/state_fields.h"
#include "core/ops/folded_pair_gradient.h"
#include "core/runtime/execution_context.h"
#include "models/linear/history_expansion.h"

namespace olrank {

/// The result of a linear training. A replay's figures are those of the objective that it minimises.
struct NewtonReport {
  std::int64_t steps = 0;
  double gradient_norm = 0.0;  // ‖∇F‖ where it stopped
  double optimality_gap = 0.0;  // F(θ) − min F is at most this: ‖∇F‖²/2c, F being c-strongly convex
};

/// Minimises F(θ) = Σ_s cross-entropy(z_s) + c/2 ‖θ‖² by Newton's method, warm-started, with an inverse
/// Hessian that is kept from round to round and recomputed when a step no longer shrinks the gradient
/// enough: most rounds cost a few passes over the history and no factorisation.
///
/// A trainer that replays keeps the history's loss to second order around its latest result, Q(θ), which
/// pairs that come and go change. A replay takes Newton's steps with the kept inverse along the
/// SampledGradient of Q and a sample in which each pair is weighted by the pairs that it stands for. No
/// pass goes over the history.
class NewtonTrainer : public Stateful {
 public:
  struct Options {
    double tolerance = 1e-6;      // of ‖∇F‖/max(1, n)
    std::int64_t max_steps = 50;  // per round
    bool replays = false;
  };

  NewtonTrainer(std::int64_t stride, const Options& options);

  /// `observed` is n, with repetitions; `ridge` is c > 0. Throws NumericError, with the parameters
  /// as they were, if no step keeps the gradient finite.
  NewtonReport train(ExecutionContext& context, const FoldedPairs& pairs, std::int64_t observed,
                     double ridge);

  /// Whether the history has been trained on since the start, load() aside, or the latest failure.
  bool can_replay() const { return !expansion_.empty(); }
  /// Takes pairs of one row into the expansion; with negative numbers it takes them out.
  void take_in(const double* row, double count, double first_wins);
  /// Takes at most `steps` steps; `count` of the sample are its weights, `first_wins` is not read. Throws
  /// as train() does.
  NewtonReport replay(ExecutionContext& context, const FoldedPairs& sample, std::int64_t steps,
                      std::int64_t observed, double ridge);

  std::span<const double> theta() const { return theta_; }  // padded with zeros
  /// Returns to parameters of an earlier training.
  void restore(std::span<const double> theta);

  void fields(StateFields& state) override;

 private:
  /// ∇F at θ into the second argument.
  using Gradient = std::function<void(std::span<const double>, std::span<double>)>;
  /// Where a step led.
  struct StepResult {
    double size = 0.0;  // ‖∇F‖
    bool shrinks = false;
  };

  NewtonReport descend(ExecutionContext& context, const FoldedPairs& pairs, std::int64_t observed,
                       double ridge);
  NewtonReport descend_on_sample(ExecutionContext& context, const FoldedPairs& sample, std::int64_t steps,
                                 std::int64_t observed, double ridge);
  /// A step with the kept inverse, the first of at most `halvings` halvings with which the gradient
  /// shrinks; tried_theta_ and tried_gradient_ are where it leads.
  StepResult try_step(const Gradient& gradient, double size, int halvings);
  void accept_step();
  void factor_hessian();
  void invert_hessian(double ridge);
  void invert_expansion(double ridge);
  void renew_inverse_hessian(ExecutionContext& context, const FoldedPairs& pairs, double ridge);

  std::int64_t stride_;
  Options options_;
  std::vector<double> theta_;
  std::vector<double> inverse_hessian_;  // [stride × stride], at some earlier θ; empty before the first
  double inverse_ridge_ = 0.0;           // c in it, where it is of the expansion
  HistoryExpansion expansion_;           // empty unless it replays
  std::vector<double> gradient_;
  std::vector<double> tried_theta_;
  std::vector<double> tried_gradient_;
  std::vector<double> step_;
};

}  // namespace olrank
