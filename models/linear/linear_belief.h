#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/ops/gradient_products.h"
#include "core/runtime/execution_context.h"
#include "models/skeleton/belief.h"
#include "models/skeleton/network_settings.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// f(x; θ) = θ·x.
class LinearModel : public ScoreModel {
 public:
  explicit LinearModel(std::int64_t features) : features_(features) {}

  std::int64_t features() const override { return features_; }
  std::int64_t parameters() const override { return features_; }
  double largest_parameter() const override;
  void score(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
             std::span<float> scores) const override;
  void add_gradient(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                    std::span<const double> weights, std::span<double> gradient) const override;
  ModelTensors tensors(std::span<const float> theta) const override;

 private:
  std::int64_t features_;
};

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
  /// Returns the report of `step`; if it throws a NumericError, the parameters are as before.
  template <class Step>
  NewtonReport or_restore(const Step& step);
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

// Linear rankers with certain orders share these.

std::int64_t padded_features(std::int64_t features);

/// The weight c of c/2 ‖θ‖² added to a summed loss: λ for the sum form; 2λn for mean loss + λ‖θ‖², times n.
double ridge_weight(LossForm form, double lambda, std::int64_t observed);

/// PairRank, a linear ranker with certain orders: Jia, Wang, Guo, Wang, "PairRank: Online pairwise learning
/// to rank by divide-and-conquer", WWW 2021. Pairwise logistic regression over all preferences so far; the
/// confidence of an order follows from the covariance of their feature differences.
std::unique_ptr<OnlineRanker> make_pairrank(const RankerRequest& request);

void set_pairrank_defaults(RankerSettings& settings, const DefaultsContext& context);

/// P²LinRank, linear rankers that vote: Jia, Wang, "Scalable exploration for neural online learning to rank
/// with perturbed feedback", SIGIR 2022, with a linear model. An order is certain when all members agree;
/// the ensemble's score is the mean of its members'.
std::unique_ptr<OnlineRanker> make_p2linrank(const RankerRequest& request);

void set_p2linrank_defaults(RankerSettings& settings, const DefaultsContext& context);

/// A linear model, or an ensemble, that is fitted to the whole history.
std::unique_ptr<ModelLearner> make_linear_learner(std::int64_t features, const RankerSettings& settings,
                                                  const TrialKeys& keys,
                                                  const std::optional<EnsembleSpec>& ensemble);

}  // namespace olrank
