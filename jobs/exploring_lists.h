#pragma once

#include <cstdint>
#include <vector>

#include "core/runtime/stage_clock.h"
#include "jobs/ranked_lists.h"
#include "jobs/saved_trial.h"

namespace olrank {

/// The lists that a trial's ranker would show next. Query i of the data is round T + 1 + i, after the T
/// rounds that the ranker has learned from.
class ExploringLists {
 public:
  /// `normaliser` gives the ranker its inputs.
  ExploringLists(SavedTrial trial, FittedNormaliser normaliser);

  /// Writes in the formats of write_ranked(). Exploring lists have no scores; a document's score is V minus
  /// its rank.
  void write(ListFormat format, const Dataset& data, ExecutionContext& context, const TextSink& sink);

 private:
  SavedTrial trial_;
  FittedNormaliser normaliser_;
  StageClock clock_;
  std::int64_t queries_ = 0;
  std::vector<float> inputs_;
};

}  // namespace olrank
