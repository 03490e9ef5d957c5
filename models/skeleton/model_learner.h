#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/feedback/preference_pairs.h"
#include "core/io/state_fields.h"
#include "core/online/online_ranker.h"
#include "models/skeleton/belief.h"

namespace olrank {

/// Models that learn side by side, each with noise on its labels.
struct EnsembleSpec {
  std::int64_t members = 2;
  double noise_variance = 0.1;  // ν²
};

/// How a ranker's parameters follow its feedback: the history and the trainers.
class ModelLearner : public Stateful {
 public:
  ModelLearner() = default;
  ~ModelLearner() override = default;
  ModelLearner(const ModelLearner&) = delete;
  ModelLearner& operator=(const ModelLearner&) = delete;

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
  /// What figures() needs in addition, if it follows the belief in the archive.
  virtual void figure_fields(StateFields&) {}
};

/// The entry "members"; a saved state with another count than `expected` is refused.
void member_count(StateFields& state, std::size_t expected);

}  // namespace olrank
