#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/ops/pair_training.h"
#include "core/ops/tangent_shape.h"
#include "core/random/rng_stream.h"
#include "core/runtime/function_ref.h"
#include "models/skeleton/score_model.h"

namespace olrank {

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

  /// The same as score(). `magnitudes`, unless empty, gets how large the terms behind each score are:
  /// rounding stays below kScoreRounding (core/math/certainty.h) times that.
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
