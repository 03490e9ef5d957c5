#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/io/state_archive.h"
#include "core/online/feedback.h"
#include "core/online/query_docs.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/stage_clock.h"

namespace olrank {

/// What a ranker works with during a call: where to compute, and whose seconds to count. Stages are named
/// score, width, rank, observe and train.
struct RoundContext {
  ExecutionContext& execution;
  StageClock& clock;
};

/// What a list's certain orders looked like, for rankers that know any.
struct ListCertainty {
  static constexpr std::array<std::int64_t, 3> kBlockRanks = {1, 5, 10};  // from 1

  std::int64_t shown_pairs = 0;              // k(k−1)/2
  std::int64_t certain_pairs = 0;            // of them
  std::int64_t blocks = 0;                   // of the whole list
  std::array<std::int64_t, 3> block_size{};  // of the block each of kBlockRanks lies in; 0 beyond the list
};

/// `first` stands certainly before `second`; docs of one query.
struct CertainOrder {
  std::int32_t first = 0;
  std::int32_t second = 0;

  friend bool operator==(const CertainOrder&, const CertainOrder&) = default;
};

/// So many of so many.
struct Tally {
  std::int64_t hits = 0;
  std::int64_t of = 0;
};

/// Spans stay valid until the next call to the ranker.
struct RankedList {
  std::span<const std::int32_t> docs;  // all of the query's, best first
  std::optional<ListCertainty> certainty;
  std::span<const CertainOrder> certain_orders = {};  // among the shown documents
  /// Own width over exact full width of the shown pairs, for rankers that keep both; else empty.
  std::span<const double> width_ratios = {};
  /// Of the decisions on shown pairs, certain or not, those that exact widths would turn; for rankers that
  /// keep both.
  Tally turned_decisions = {};
};

/// Docs of one query, in the order a user's clicks suggest.
struct PreferencePair {
  std::int32_t winner = 0;
  std::int32_t loser = 0;

  friend bool operator==(const PreferencePair&, const PreferencePair&) = default;
};

/// What a round taught. Spans stay valid until the next call to the ranker.
struct LearnReport {
  std::span<const PreferencePair> pairs;
  std::span<const double> steps;  // σ_t of gradient descent, one a member; empty where none was made
};

/// Everything behind the latest list, for traces: filled between rank() and learn().
struct RoundDetail {
  std::vector<double> scores;             // [V]
  std::vector<std::vector<float>> theta;  // one of each member, flat: layer by layer
  std::vector<double> width_sq;           // [V × V], empty without a covariance
  std::vector<std::uint8_t> certain;  // [V × V], 1 where row i is certainly before column j; may be empty
};

/// Parameters by name, as model files hold them, and what describes them.
struct ModelTensors {
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };
  std::vector<Tensor> tensors;
  std::vector<std::pair<std::string, std::string>> architecture;  // key, value
};

/// A figure about the ranker's own health at an evaluation: numerical drift, optimality gap.
struct RankerFigure {
  std::string name;
  double value = 0.0;
  bool of_the_run = false;  // what a run took, as its seconds: no result, and another where it was resumed
};

class FrozenRanker;

/// A ranking function that learns from what it shows. Its whole state is parameters, posterior and history;
/// coins come from keys and the round's number, so that save() and load() go on to the same bits. Lists of
/// others can teach it as well: learn() depends on the feedback alone, not on an earlier rank().
class OnlineRanker {
 public:
  OnlineRanker() = default;
  virtual ~OnlineRanker() = default;
  OnlineRanker(const OnlineRanker&) = delete;
  OnlineRanker& operator=(const OnlineRanker&) = delete;

  /// The list to show in `round` (from 1): `cutoff` ranks of it will be seen.
  virtual RankedList rank(RoundContext& context, const QueryDocs& query, std::uint32_t round) = 0;
  virtual LearnReport learn(RoundContext& context, const Feedback& feedback) = 0;

  /// What the latest rank() rested on; `full` asks for parameters, widths and orders too, which is costly.
  virtual void describe(const QueryDocs& query, bool full, RoundDetail& detail) = 0;

  /// The latest model's scores of any documents.
  virtual void score(ExecutionContext& context, FeatureMatrix docs, std::span<float> scores) const = 0;

  /// Begins to score documents with the model as it stands now, beside the rounds that follow; false where
  /// that cannot be, and score() is the way. What is begun is finished before it is begun again.
  virtual bool begin_scores(FeatureMatrix) { return false; }
  /// Whether finish_scores() would not wait.
  virtual bool scores_ready() { return true; }
  virtual void finish_scores(std::span<float>) {}

  virtual std::int64_t parameters() const = 0;
  virtual ModelTensors model() const = 0;
  virtual std::vector<RankerFigure> figures(ExecutionContext& context) const = 0;

  /// What makes lists as this ranker would now, while it goes on learning; cheap enough for every round.
  /// Null for rankers whose lists belong to the round that learns from them.
  virtual std::shared_ptr<const FrozenRanker> freeze() const { return nullptr; }
  /// Whether learn() looks at documents that were not shown.
  virtual bool learns_from_unshown() const { return false; }

  virtual void save(StateWriter& state) const = 0;
  virtual void load(StateReader& state) = 0;
};

}  // namespace olrank
