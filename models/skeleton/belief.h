#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/normaliser.h"
#include "core/feedback/preference_pairs.h"
#include "core/interface.h"
#include "core/io/state_archive.h"
#include "core/online/online_ranker.h"
#include "core/ops/gradient_products.h"
#include "core/runtime/execution_context.h"

namespace olrank {

/// The parameters of each member; a single model is one member.
using MemberThetas = std::span<const std::vector<float>>;

/// The decision about one query rests on this evidence. The arrays lie in the scratch memory that they were
/// taken from.
struct Evidence {
  std::int64_t members = 1;
  std::span<float> scores;         // [V]
  std::span<float> member_scores;  // [members × V]; empty where widths decide
  std::span<float> factors;        // tangent factors by document; empty for linear scores
  std::span<double> width_sq;      // w², [V × V]; empty where votes decide
  double least_difference = 0.0;   // score differences up to it are rounding
};

/// It is what a ranker knows about the order of a query's documents: their scores, and either widths from a
/// posterior or the votes of an ensemble. The parameters belong to its ModelLearner. Const functions may
/// run on several threads at once.
class Belief : public Interface, public Stateful {
 public:
  /// Arrays for a query of `docs` documents, uninitialised.
  virtual Evidence take_evidence(Scratch& scratch, std::int64_t members, std::int64_t docs) const = 0;
  /// Fills everything but the widths.
  virtual void score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                     Evidence& evidence) const = 0;
  /// The ranker's score of any documents: for an ensemble the mean of its members'.
  virtual void mean_score(ExecutionContext& context, MemberThetas thetas, FeatureMatrix docs,
                          std::span<float> scores) const = 0;

  /// Whether widths decide, not votes.
  virtual bool has_widths() const { return false; }
  /// Fills width_sq, which every belief with widths does. Throws NumericError where rounding has eaten the
  /// digits.
  virtual void measure_widths(ExecutionContext&, FeatureMatrix, Evidence&) const {}
  /// Fills width_sq for the ranker that learns: repairs the posterior where needed and keeps what observe()
  /// can reuse.
  virtual void measure_and_repair_widths(ExecutionContext& context, FeatureMatrix docs,
                                         Evidence& evidence) {
    measure_widths(context, docs, evidence);
  }
  /// log(det A/det λI).
  virtual double log_det() const { return 0.0; }

  /// Whether observe() reads the evidence that score() filled at the current parameters.
  virtual bool observes_evidence() const { return false; }
  /// Takes the pairs of a query into the posterior.
  virtual void observe(ExecutionContext&, FeatureMatrix, const Evidence&, std::span<const PreferencePair>) {
  }

  /// This belief as it is now; no later observation changes it.
  virtual std::shared_ptr<const Belief> freeze() const = 0;
  virtual ModelTensors model(MemberThetas thetas) const = 0;
  virtual std::vector<RankerFigure> figures(ExecutionContext&) const { return {}; }
};

/// Models that learn side by side, each with noise on its labels.
struct EnsembleSpec {
  std::int64_t members = 2;
  double noise_variance = 0.1;  // ν²
};

/// How a ranker's parameters follow its feedback: the history and the trainers.
class ModelLearner : public Interface, public Stateful {
 public:
  virtual MemberThetas thetas() const = 0;
  /// Replaces those of thetas(); the history no longer belongs to them.
  virtual void set_thetas(std::vector<std::vector<float>> thetas) = 0;
  /// Adds a round's preferences to the history.
  virtual void observe(const Feedback& feedback, const LossPairs& loss) = 0;
  /// Trains every member on the history. Throws NumericError, with all parameters as they were, if no
  /// repeat saves a training; the next one starts from the same parameters. Returns the σ_t of gradient
  /// descent, one per member; empty where training has no common step.
  virtual std::span<const double> train(ExecutionContext& context, std::uint32_t round) = 0;
  /// Whether a round without pairs trains, too, as where labels get new noise in every round.
  virtual bool trains_without_pairs() const { return false; }
  /// Whether documents that were not shown matter, too.
  virtual bool learns_from_unshown() const { return false; }

  virtual std::vector<RankerFigure> figures() const { return {}; }
  /// Names what figures() needs in addition, if it follows the belief in the archive.
  virtual void figure_fields(StateFields&) {}
};

/// The entry "members"; a saved state with another count than `expected` is refused.
void member_count(StateFields& state, std::size_t expected);

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

/// The documents best first. Throws NumericError for a score that is NaN.
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
