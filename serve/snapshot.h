#pragma once

#include <memory>
#include <optional>
#include <string>

#include "serve/arm_ledger.h"
#include "serve/ranker_source.h"

namespace olrank {

/// The published ranker as bytes, without what only learning needs. `live` is the ranker that it was frozen
/// from, still at that round.
std::string snapshot_bytes(const OnlineRanker& live, const PublishedRanker& published,
                           const std::optional<ArmLedger>& arms);

/// Makes published rankers from such bytes, in another process with the same settings.
class SnapshotReader {
 public:
  /// `ranker` is as its settings make it.
  SnapshotReader(std::unique_ptr<OnlineRanker> ranker, std::optional<ArmPlan> arms);

  bool learns_from_unshown() const { return ranker_->learns_from_unshown(); }
  /// Throws IoError for damaged bytes and those of a version that writes other ones.
  std::shared_ptr<const PublishedRanker> read(std::string bytes, const std::string& origin);

 private:
  std::unique_ptr<OnlineRanker> ranker_;
  std::optional<ArmPlan> plan_;
};

}  // namespace olrank
