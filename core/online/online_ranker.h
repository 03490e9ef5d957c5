#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/explore/certain_orders.h"
#include "core/explore/exploring_list.h"
#include "core/fair/exposure.h"
#include "core/interface.h"
#include "core/io/safetensors.h"
#include "core/io/state_archive.h"
#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "core/runtime/progress.h"

namespace olrank {

/// Names that a query and its documents keep from round to round, for rankers that remember them.
struct QueryIdentity {
  std::int64_t query = -1;             // −1: nothing has a name
  std::span<const std::int64_t> docs;  // [V]

  bool is_known() const { return query >= 0; }
};

/// The names of a part's queries and documents in its files.
struct PartNames {
  std::span<const std::string> qids;  // [queries]
  PackedTexts docs = {};              // [docs], or empty
};
inline PartNames names_of(const Dataset& part) {
  return {part.contents().qids, part.contents().doc_names};
}

/// The features of a query's documents: all that a ranker gets. Grades are a separate type, QueryGrades,
/// that only users and metrics get.
struct QueryDocs {
  std::int64_t query = 0;      // number within its part
  std::int64_t first_doc = 0;  // number within the part of document 0; identifies documents across rounds
  FeatureMatrix features;      // [V × d], normalised
  std::span<const std::int64_t> numbers = {};  // [V] those numbers, unless they follow first_doc
  const FairRound* fair = nullptr;             // the documents' groups, where exposure is measured
  const QueryIdentity* identity = nullptr;     // where names are not those numbers
  const PartNames* names = nullptr;            // in trials, for rankers and users of a program
  std::int64_t person = 0;                     // who asks, of a user that is several people

  std::int64_t docs() const { return features.docs; }
  std::int64_t number(std::int32_t doc) const { return numbers.empty() ? first_doc + doc : numbers[doc]; }
  std::string_view qid() const { return names == nullptr ? std::string_view() : names->qids[query]; }
  /// Names of the documents; none where they have none.
  std::vector<std::string_view> ids() const {
    std::vector<std::string_view> ids;
    if (names == nullptr || names->docs.empty()) return ids;
    for (std::int64_t doc = 0; doc < docs(); ++doc) ids.push_back(names->docs[first_doc + doc]);
    return ids;
  }
};

/// A user's clicks on a shown list: all that a ranker learns from.
struct Feedback {
  std::uint32_t round = 0;  // from 1
  QueryDocs query;
  std::span<const std::int32_t> shown;   // docs, best first
  std::span<const std::uint8_t> clicks;  // 0 or 1 per shown document
  std::span<const double> rewards{};     // what each click is worth, per shown document; empty: 1
};

/// Docs of one query, in the order that a user's clicks suggest.
struct PreferencePair {
  std::int32_t winner = 0;
  std::int32_t loser = 0;

  friend bool operator==(const PreferencePair&, const PreferencePair&) = default;
};

/// Pairs `first` to `first + count` of rows that hold winner and loser in turn.
inline std::vector<PreferencePair> pairs_of_rows(std::int64_t first, std::int64_t count) {
  std::vector<PreferencePair> pairs;
  pairs.reserve(count);
  for (std::int64_t pair = first; pair < first + count; ++pair)
    pairs.push_back({static_cast<std::int32_t>(2 * pair), static_cast<std::int32_t>(2 * pair + 1)});
  return pairs;
}

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
  /// Scores the documents of a whole part, for rankers whose scores depend on the query.
  virtual void score_part(ExecutionContext& context, FeatureMatrix docs, const PartNames& /*names*/,
                          std::span<float> scores) const {
    score(context, docs, scores);
  }

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

/// A query to rank.
struct RankingTask {
  FeatureMatrix docs;               // [V × d], normalised
  std::int64_t cutoff = 10;         // ranks that will be seen
  std::uint32_t round = 1;          // selects the draws of an exploring list
  bool explore = true;              // false: by score
  const FairRound* fair = nullptr;  // the documents' groups, where exposure is measured
  QueryIdentity identity = {};
};

/// A list, with the scores and orders behind it. Memory is reused from list to list.
struct Ranking {
  std::vector<float> scores;           // [V]
  std::vector<std::int32_t> by_score;  // docs, best first
  std::vector<std::int32_t> list;      // docs as they are to be shown
  std::vector<double> propensity;      // of each rank, as in RankedList
  bool knows_orders = false;           // whether `orders` and `certainty` are set
  OrderBits orders;                    // by places of by_score
  std::optional<ListCertainty> certainty;
  std::optional<ListFairness> fairness;
  /// P(document of rank i is better than that of rank j), [k × k] for the k ranks that will be seen; empty
  /// where a ranker knows none.
  std::vector<double> probabilities;
};

/// A snapshot of a ranker: it never changes, and any number of threads may use it at once, each with a
/// different context.
class FrozenRanker : public Interface {
 public:
  virtual void rank(ExecutionContext& context, const RankingTask& task, Ranking& ranking) const = 0;
  /// The scores behind a list without exploration; false of a ranker that remembers no documents by name.
  virtual bool score_known(FeatureMatrix, const QueryIdentity&, std::span<double>) const { return false; }
  virtual ModelTensors model() const = 0;
};

/// The bytes of a model file: its tensors, its architecture, then `metadata` and its checksum.
std::string model_bytes(const ModelTensors& model, const ModelMetadata& metadata);

/// The keys of a trial's random draws. They contain no ranker's name and no running number, so that
/// compared rankers get the same draws.
struct TrialKeys {
  std::uint64_t seed = 0;
  std::uint64_t fold = 0;
  std::uint64_t click_model = 0;  // name_hash() of the user

  static TrialKeys of(std::uint64_t seed, std::uint64_t fold, std::string_view user) {
    return {seed, fold, name_hash(user.data(), user.size())};
  }
  PhiloxKey key(Purpose purpose, std::uint64_t member = 0) const {
    return make_key(
        {.seed = seed, .purpose = purpose, .fold = fold, .click_model = click_model, .member = member});
  }
};

}  // namespace olrank
