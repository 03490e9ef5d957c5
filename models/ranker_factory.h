#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/online/labelled_queries.h"
#include "core/online/online_ranker.h"
#include "core/online/trial_keys.h"
#include "models/neural/device_ranker.h"
#include "models/ranker_settings.h"

namespace olrank {

/// What a ranker needs in addition to its settings.
struct RankerDependencies {
  const LabelledQueries* labels = nullptr;  // of kinds that learn from them; has to outlive the ranker
  std::int64_t memory = 0;                  // bytes that its covariance may take; 0: all there is
  std::span<const std::vector<float>> first_thetas = {};  // of each member, of a model to start from
  const DeviceHome* home = nullptr;                       // of rankers that are to be computed on a device
};

/// Whether rankers of this kind learn from true grades: all others are never given any.
bool needs_labels(RankerKind kind);

/// Throws for settings that only a device can follow.
void check_on_cpu(const RankerSettings& settings);

/// Whether rankers of this kind can go on from a model's parameters: those that fit the whole history anew
/// from zero would forget them with the first feedback.
bool can_start_from_model(RankerKind kind);

/// The ranker that the settings describe, as it is before round 1. Throws InvalidArgument for settings that
/// contradict each other, and for a kind that learns from labels where there are none.
std::unique_ptr<OnlineRanker> make_ranker(const RankerSettings& settings, std::int64_t features,
                                          const TrialKeys& keys, std::int64_t cutoff,
                                          const RankerDependencies& dependencies = {});

/// Throws what make_ranker() would, for any number of features and before any data is there, and refuses
/// steps above the largest stable one.
void check_ranker(const RankerSettings& settings, std::int64_t cutoff);

}  // namespace olrank
