#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/online/labelled_queries.h"
#include "core/online/trial_keys.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

struct RankerDevice;

/// What a ranker needs in addition to its settings.
struct RankerDependencies {
  const LabelledQueries* labels = nullptr;  // for kinds that learn from them; has to outlive the ranker
  std::int64_t memory = 0;                  // bytes that its covariance may take; 0: all there is
  std::span<const std::vector<float>> first_thetas = {};  // of each member, of a model to start from
  const RankerDevice* device = nullptr;                   // to compute the ranker on a device
  bool sparse = false;                                    // whether documents are sparse
};

/// What a kind's maker is given.
struct RankerRequest {
  const RankerSettings& settings;
  std::int64_t features = 1;
  const TrialKeys& keys;
  std::int64_t cutoff = 10;
  const RankerDependencies& dependencies;
};

}  // namespace olrank
