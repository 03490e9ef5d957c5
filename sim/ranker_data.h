#pragma once

#include <cstdint>

#include "core/data/dataset.h"
#include "core/online/labelled_queries.h"
#include "sim/trial_settings.h"

namespace olrank {

/// A ranker may know this about a trial's data when it is created. Compact documents come query by query,
/// so that here are none of them.
struct RankerData {
  FeatureMatrix train;                      // all documents of the part whose queries are drawn
  std::int64_t most_docs = 0;               // of one of its queries
  FeatureMatrix eval_docs;                  // all documents to be scored in evaluations
  const LabelledQueries* labels = nullptr;  // for rankers that learn from them
  std::int64_t slot = 0;                    // of the trials in parallel, from 0; chooses the GPU
};

RankerData ranker_data(const TrialData& data, const LabelledQueries* labels = nullptr,
                       std::int64_t slot = 0);

}  // namespace olrank
