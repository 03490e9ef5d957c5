#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/interface.h"
#include "core/io/fingerprint.h"
#include "core/online/online_ranker.h"
#include "serve/arm_ledger.h"

namespace olrank {

class FeatureCounters;

/// The ranker that requests use: one round's frozen ranker with its statistics.
struct PublishedRanker {
  std::shared_ptr<const FrozenRanker> ranker{};  // null before a replica has its first model
  std::uint64_t round = 0;
  std::int64_t pairs = 0;
  std::uint64_t skipped = 0;
  std::vector<RankerFigure> figures{};  // may be a few rounds old
  std::optional<ArmReport> arms{};      // of a service with arms
};

/// Where a service's ranker comes from: the learner of this process, or that of another one. Thread-safe.
class RankerSource : public Interface {
 public:
  /// Never null.
  virtual std::shared_ptr<const PublishedRanker> latest() const = 0;
  /// Makes a list by the latest ranker, which it returns. Throws like FrozenRanker::rank().
  virtual std::shared_ptr<const PublishedRanker> rank(ExecutionContext& context, const RankingTask& task,
                                                      Ranking& ranking) {
    std::shared_ptr<const PublishedRanker> published = latest();
    published->ranker->rank(context, task, ranking);
    return published;
  }
  /// The latest model and its rounds.
  struct Model {
    std::uint64_t round = 0;
    ModelTensors tensors{};
  };
  virtual Model model() {
    const std::shared_ptr<const PublishedRanker> published = latest();
    return {published->round, published->ranker->model()};
  }
  /// Why learning has stopped, if it has.
  virtual std::optional<std::string> failure() const = 0;
  virtual bool learns_from_unshown() const = 0;

  /// A summary of the learner's whole state.
  struct State {
    std::uint64_t round = 0;
    std::int64_t pairs = 0;
    std::uint64_t skipped = 0;  // rounds that could not be learned
    Fingerprint fingerprint;    // zero where there is no learner in this process
  };
  virtual State state() = 0;
  /// Throws an Error where there is no learner in this process.
  virtual State write_checkpoint() {
    throw Error("This process has no learner: ask the learner for a checkpoint.");
  }
  struct Snapshot {
    std::uint64_t round = 0;
    std::string bytes{};
    std::chrono::nanoseconds made_in{};  // time for which learning stood still
  };
  /// Another process needs this to make the lists of this moment: SnapshotReader reads it.
  virtual Snapshot snapshot() = 0;

  /// A replica tells the seconds since it last knew that its model is the newest.
  virtual std::optional<double> model_age() const { return std::nullopt; }
};

/// The published ranker as bytes, without what only learning needs. `live` is the ranker that it was frozen
/// from, still at that round.
std::string snapshot_bytes(const OnlineRanker& live, const PublishedRanker& published,
                           const std::optional<ArmLedger>& arms, const FeatureCounters* counters = nullptr);

/// GET /v1/snapshot answers this: settings, start model and those bytes, a file that open_snapshot() reads.
std::string followed_bytes(const std::string& identity, const std::string& start_model,
                           const std::string& snapshot);
/// The file, checked, with at most so much memory of documents, of the queries learned last; 0: as it is.
std::string limited_snapshot(std::string bytes, const std::string& origin, double megabytes);

/// Makes published rankers from such bytes, in another process with the same settings.
class SnapshotReader {
 public:
  /// `ranker` is as its settings make it. A snapshot's counters replace those of a schema that has some.
  SnapshotReader(std::unique_ptr<OnlineRanker> ranker, std::optional<ArmPlan> arms,
                 FeatureCounters* counters = nullptr);

  bool learns_from_unshown() const { return ranker_->learns_from_unshown(); }
  /// Throws IoError for damaged bytes and those of a version that writes other ones.
  std::shared_ptr<const PublishedRanker> read(std::string bytes, const std::string& origin);

 private:
  std::unique_ptr<OnlineRanker> ranker_;
  std::optional<ArmPlan> plan_;
  FeatureCounters* counters_;
};

}  // namespace olrank
