#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace olrank {

/// A query of a round, as a ranker sees it. Spans are valid during the call.
struct ExternalQuery {
  std::uint32_t round = 0;  // from 1
  std::int64_t query = 0;   // number within its part of the data
  std::int64_t docs = 0;    // V
  std::int64_t features = 0;
  std::span<const float> inputs;           // [V × features], normalised, row by row
  std::string_view qid = {};               // its name there
  std::vector<std::string_view> ids = {};  // [V] names of the documents; empty where they have none
  std::int64_t person = 0;                 // who asks, where the user is several people; 0 in evaluations
};

/// A ranker is certain that `first` is better than `second`; documents of one query.
struct ExternalOrder {
  std::int32_t first = 0;
  std::int32_t second = 0;
};

/// A ranker of a program that uses olrank as a library. A trial makes one and calls it from one thread;
/// other trials, each with a ranker of its own, may run beside it. Trials are repeated and resumed to the
/// same bits, so everything follows from the request, the calls so far and the loaded state: draws come
/// from the request's seed, fold and user and the query's round.
class ExternalRanker {
 public:
  ExternalRanker() = default;
  virtual ~ExternalRanker() = default;
  ExternalRanker(const ExternalRanker&) = delete;
  ExternalRanker& operator=(const ExternalRanker&) = delete;

  /// Documents, 0 to V − 1, best first: the first min(cutoff, V) at least, each once. Those left out follow
  /// in the order of the data.
  virtual std::vector<std::int32_t> rank(const ExternalQuery& query) = 0;
  /// 0 or 1 for each shown document. Feedback may be on another ranker's list: with recorded feedback,
  /// rank() is never called.
  virtual void learn(const ExternalQuery& query, std::span<const std::int32_t> shown,
                     std::span<const std::uint8_t> clicks) = 0;
  /// For evaluations: writes the current score of each document, finite, and higher for better ones. The
  /// documents [docs × features] are those of all queries together, so a score depends on its document
  /// alone.
  virtual void score(std::span<const float> inputs, std::int64_t docs, std::int64_t features,
                     std::span<float> scores) const = 0;
  /// Scores one query's documents, where scores depend on the query; `round` is the latest one.
  /// Returns false where score() serves.
  virtual bool score_query(const ExternalQuery& /*query*/, std::span<float> /*scores*/) const {
    return false;
  }
  /// After rank(), the orders of the same query that the ranker is certain of, each pair once and no
  /// circle: reports then have figures of certainty. None: the ranker knows no such orders.
  virtual std::optional<std::vector<ExternalOrder>> certain_orders(const ExternalQuery& /*query*/) {
    return std::nullopt;
  }

  /// Its whole state, any bytes, for checkpoints.
  virtual std::string save() const = 0;
  /// Continues from what save() wrote. Throws if it cannot.
  virtual void load(std::string_view state) = 0;

  /// Only reports show it.
  virtual std::int64_t parameters() const { return 0; }
};

/// A ranker is made for such a request.
struct ExternalRankerRequest {
  std::string name;           // of the ranker
  std::int64_t features = 0;  // columns of the documents
  std::int64_t cutoff = 0;    // documents shown in a round
  std::uint64_t seed = 0;     // of the trial
  std::uint64_t fold = 0;
  std::uint64_t user = 0;       // a hash of the user's name, so that draws differ between users
  std::string parameters = {};  // those in the setting own = "NAME(PARAMETERS)"
};

/// Several threads may call it at once. Short trials that measure the speed get rankers of their own, too.
using ExternalRankerFactory = std::function<std::unique_ptr<ExternalRanker>(const ExternalRankerRequest&)>;

/// Makes a ranker known, so that a [[ranker]] with this name and kind = "external" plays trials with it.
/// Trials keep the description, one line, and refuse to continue with a ranker of another one: put a
/// version and parameters into it. Throws InvalidArgument for a name that is empty or taken. Any thread may
/// call this.
void register_ranker(const std::string& name, const std::string& description,
                     ExternalRankerFactory factory);
/// Rankers that are made stay. Does nothing for an unknown name.
void unregister_ranker(const std::string& name);

}  // namespace olrank
