#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/explore/ranked_list.h"
#include "core/io/state_fields.h"
#include "core/online/feedback.h"
#include "core/online/preference_pair.h"
#include "core/online/query_docs.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/stage_clock.h"

namespace olrank {

/// The resources of one call to a ranker: where to compute, and the clock that counts the seconds of the
/// stages score, width, rank, observe and train.
struct RoundContext {
  ExecutionContext& execution;
  StageClock& clock;
};

/// A report says what a ranker learned from one round. Spans stay valid until the ranker's next call.
struct LearnReport {
  std::span<const PreferencePair> pairs;
  std::span<const double> steps;  // σ_t of gradient descent, one per member; empty if none was taken
};

/// The numbers behind the latest list, for traces; filled between rank() and learn().
struct RoundDetail {
  std::vector<double> scores;             // [V]
  std::vector<std::vector<float>> theta;  // one per member, flat, layer by layer
  std::vector<double> width_sq;           // [V × V], empty without a covariance
  std::vector<std::uint8_t> certain;  // [V × V], 1 where row i is certainly before column j; may be empty
  std::vector<double> probability;    // [V × V] that row i is better than column j; empty where unknown
};

/// The parameters by name, as in model files, and the description of the architecture.
struct ModelTensors {
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };
  std::vector<Tensor> tensors;
  std::vector<std::pair<std::string, std::string>> architecture;  // key, value
};

/// A figure that a ranker reports at an evaluation, such as numerical drift or optimality gap.
struct RankerFigure {
  std::string name;
  double value = 0.0;
  bool of_the_run = false;  // a cost of this run, like seconds: not a result, differs after a resume
};

class FrozenRanker;
struct Ranking;
struct RankingTask;

/// A list that is asked for ahead of its round, and why it could not be made.
struct ListRequest {
  const RankingTask* task = nullptr;
  Ranking* ranking = nullptr;
  std::exception_ptr failure{};
};

/// A ranking function that learns from the lists it shows. Its whole state is parameters, posterior and
/// history; random draws depend on keys and the round's number alone, so that a loaded ranker continues to
/// the same bits. learn() depends on the feedback alone, not on an earlier rank(), so that feedback on
/// other rankers' lists works too.
class OnlineRanker : public Stateful {
 public:
  OnlineRanker() = default;
  ~OnlineRanker() override = default;
  OnlineRanker(const OnlineRanker&) = delete;
  OnlineRanker& operator=(const OnlineRanker&) = delete;

  /// The list to show in `round` (from 1): `cutoff` ranks of it will be seen.
  virtual RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) = 0;
  /// Throws NumericError, with the parameters as they were and ready for the next round, if this feedback
  /// cannot be learned.
  virtual LearnReport learn(RoundContext& context, const Feedback& feedback) = 0;

  /// The numbers behind the latest rank(); `full` adds parameters, widths and orders, which is expensive.
  virtual void describe(const QueryDocs& query, bool full, RoundDetail& detail) = 0;

  /// The latest model's scores of any documents.
  virtual void score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const = 0;

  /// Starts scoring documents with the current model while the following rounds run; returns false if that
  /// is not supported, and the caller uses score() instead. finish_scores() comes before the next
  /// begin_scores().
  virtual bool begin_scores(FeatureMatrix) { return false; }
  /// Whether finish_scores() would return at once.
  virtual bool scores_ready() { return true; }
  virtual void finish_scores(std::span<float>) {}

  virtual std::int64_t parameters() const = 0;
  virtual ModelTensors model() const = 0;
  virtual std::vector<RankerFigure> figures(ExecutionContext& context) const = 0;

  /// A snapshot that makes lists as this ranker would now, while the ranker keeps learning; cheap enough
  /// for every round. Null for rankers that learn from a list only in the round that made it.
  virtual std::shared_ptr<const FrozenRanker> freeze() const { return nullptr; }
  /// Whether lists ahead of their rounds come from make_lists(): a device holds one copy of a state.
  virtual bool makes_lists() const { return false; }
  /// The lists that a snapshot of this moment would make. Those that cannot be made say why; throws what
  /// concerns them all.
  virtual void make_lists(ExecutionContext&, std::span<ListRequest>) {}
  /// Whether learn() reads documents that were not shown.
  virtual bool learns_from_unshown() const { return false; }

  /// The part of the state that lists come from, without what only learning needs. A ranker of the same
  /// settings that has loaded it freezes to the same lists; it cannot learn on.
  virtual void save_for_lists(StateWriter& state) const { save(state); }
  virtual void load_for_lists(StateReader& state) { load(state); }
};

}  // namespace olrank
