#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/normaliser.h"
#include "core/interface.h"
#include "core/online/online_ranker.h"
#include "core/ops/score_gradient.h"
#include "core/runtime/execution_context.h"
#include "models/skeleton/belief.h"

namespace olrank {

/// A scoring function f(x; θ) whose parameters the caller holds. That is all that rankers need which follow
/// a gradient or try neighbours of θ.
class ScoreModel : public Interface {
 public:
  virtual std::int64_t features() const = 0;
  virtual std::int64_t parameters() const = 0;

  /// Whether a document's score depends on the other documents of its list, so that those of several lists
  /// need their list_ends.
  virtual bool reads_lists() const { return false; }

  /// Parameters within ±this keep the scores of any accepted input finite.
  virtual double largest_parameter() const = 0;

  /// scores[i] = f(x_i; θ).
  virtual void score(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                     std::span<float> scores) const = 0;

  /// gradient += Σ_i weights[i] ∇_θ f(x_i; θ), in double.
  virtual void add_gradient(ExecutionContext& context, std::span<const float> theta, FeatureMatrix docs,
                            std::span<const double> weights, std::span<double> gradient) const = 0;

  /// gradient [p] = Σ_i slopes[i] ∇_θ f(x_i; θ), with the slopes that `find_slopes` finds from the scores.
  /// For training: a model may sum in float32 what it then adds up in double.
  virtual void find_score_gradient(ExecutionContext& context, std::span<const float> theta,
                                   FeatureMatrix docs, ScoreSlopes find_slopes,
                                   std::span<double> gradient) const;

  /// θ as named tensors, with the description of the function.
  virtual ModelTensors tensors(std::span<const float> theta) const = 0;
};

/// Scores of one query's documents, and the documents best first. Throws NumericError for a score that is
/// NaN.
void score_and_order(ExecutionContext& context, const ScoreModel& model, std::span<const float> theta,
                     FeatureMatrix docs, std::vector<float>& scores, std::vector<std::int32_t>& by_score);
void order_by_score(ExecutionContext& context, std::span<const float> scores,
                    std::vector<std::int32_t>& by_score);

/// The largest |score| / |input| that leaves a margin to the range of float32.
inline double largest_finite_gain() {
  return 1e37 / double{FittedNormaliser::kLargestInput};
}

// Ensembles of linear models and of networks share these.

/// The evidence of votes.
Evidence take_votes(Scratch& scratch, std::int64_t members, std::int64_t docs);

/// The tensors of all members: "members.0.linear.weight", …
ModelTensors ensemble_tensors(const ScoreModel& model, MemberThetas thetas);

}  // namespace olrank
