#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/explore/certain_orders.h"
#include "core/explore/exploring_list.h"
#include "core/online/online_ranker.h"
#include "core/ops/pair_training.h"
#include "core/ops/tangent_factors.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "models/posterior/posterior.h"
#include "models/skeleton/belief.h"

namespace olrank {

/// A full covariance alongside another one: it observes the same pairs, decides nothing, and gives the
/// exact widths of the shown documents.
class WidthShadow {
 public:
  WidthShadow(const TangentShape& shape, std::unique_ptr<Posterior> posterior);

  /// Compares the widths in `evidence`, which decided by `rule`, and writes width ratios and reversed
  /// decisions to `list`, which refers to this object from then on.
  void compare(ExecutionContext& context, std::span<const std::int32_t> shown, const Evidence& evidence,
               const CertaintyRule& rule, RankedList& list);
  void observe(ExecutionContext& context, std::span<const std::int32_t> shown, const Evidence& evidence,
               std::span<const PreferencePair> pairs);

  void save(StateWriter& state) const { posterior_->save(state); }
  void load(StateReader& state) { posterior_->load(state); }

 private:
  /// The factors of the shown documents, by rank.
  TangentFactors factors_of(std::span<const std::int32_t> shown, const Evidence& evidence);

  TangentShape shape_;
  std::unique_ptr<Posterior> posterior_;
  // Memory that stays from list to list, by rank.
  std::vector<double> scores_;
  std::vector<double> own_sq_;
  std::vector<double> exact_sq_;
  std::vector<double> ratios_;
  std::vector<float> shown_factors_;
  std::vector<PreferencePair> shown_pairs_;
};

/// The scores and own squared widths that decided about shown documents, and their exact squared widths; [n
/// × n].
struct ShownWidths {
  CertaintyRule rule;
  std::span<const double> scores;
  std::span<const double> own_sq;
  std::span<const double> exact_sq;
};

/// Fills `ratios` with own width over exact width of each pair whose exact width is not 0, as it is for
/// documents with the same features. Returns how many decisions on all pairs exact widths would reverse.
Tally compare_widths(const ShownWidths& shown, std::vector<double>& ratios);

/// A scoring function whose gradients are known document by document: what rankers need which train on
/// pairs, and whose confidence follows from gradients. The losses below are computed from scores and
/// gradients; a model overrides those that it computes faster.
class TangentModel : public ScoreModel {
 public:
  /// How its gradients fall into factors.
  virtual const TangentShape& tangent_shape() const = 0;
  /// Documents that calls will go over again and again, and that do not change until the result is
  /// destroyed: a model that computes elsewhere brings them there once. The model has to outlive it.
  virtual std::shared_ptr<const void> keep_docs(FeatureMatrix) const { return nullptr; }
  /// θ₀.
  virtual std::vector<float> first_parameters(PhiloxKey key) const = 0;

  /// Scores as score() does. `magnitudes`, unless empty, gets how large the terms behind each score are:
  /// rounding stays below kScoreRounding (core/math/pair_loss.h) times that.
  virtual void score_with_magnitudes(ExecutionContext& context, std::span<const float> theta,
                                     FeatureMatrix docs, std::span<float> scores,
                                     std::span<float> magnitudes) const = 0;
  /// The factors of every document's gradient; scores and magnitudes likewise, unless they are empty.
  virtual void find_factors(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                            std::span<float> factors, std::span<float> scores,
                            std::span<float> magnitudes) const = 0;
  /// products[i] = ∇_θ f(x_i; θ) · v.
  virtual void multiply_gradients(ExecutionContext& context, std::span<const float> theta,
                                  FeatureMatrix docs, std::span<const double> v,
                                  std::span<double> products) const = 0;
  /// gradient += Σ_i weights[i] ∇_θ f(x_i; θ), with the weights that `weigh` finds from the scores.
  virtual void add_gradient_of_scores(
      ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
      FunctionRef<void(std::span<const float> scores, std::span<double> weights)> weigh,
      std::span<double> gradient) const = 0;

  void add_gradient(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                    std::span<const double> weights, std::span<double> gradient) const override;
  void find_score_gradient(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                           ScoreSlopes find_slopes, std::span<double> gradient) const override;

  // The functions of core/ops/pair_training.h, and largest_curvature() at θ.
  virtual double find_loss_gradient(ExecutionContext& context, std::span<const float> theta,
                                    FeatureMatrix docs, std::span<const PairTerm> terms,
                                    const PairObjective& objective, std::span<double> gradient) const;
  virtual void find_gradient(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                             std::span<const PairTerm> terms, const PairObjective& objective,
                             std::span<double> gradient) const;
  virtual double find_loss(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                           std::span<const PairTerm> terms, const PairObjective& objective) const;
  virtual double find_curvature(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                                std::span<const PairTerm> terms, std::span<double> vector) const;
};

}  // namespace olrank
