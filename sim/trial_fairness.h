#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/fair/exposure.h"
#include "core/fair/group_settings.h"
#include "core/online/click_model.h"

namespace olrank {

/// A trial measures exposure by these.
struct TrialFairness {
  ExposureRule rule;
  ExposureKind exposure = ExposureKind::kPosition;
};

/// How likely each rank of a list is examined, as a share of the first rank.
struct Examination {
  std::vector<double> by_rank;  // P(1) = 1, P(2), …
  std::int64_t lists = 0;       // that it was estimated by; 0: exact, or given
};

/// The mean over queries drawn at random, each with its documents in random order; of the queries that have
/// a rank. Exact where the user has an examination_law(), else estimated by `lists` seeded lists.
Examination examination_of(const ClickModel& user, const Dataset& train, std::int64_t ranks,
                           std::int64_t lists, std::int64_t fold, const std::string& user_name);

/// The rule of a fold and a user. The same for all seeds.
struct PlannedFairness {
  TrialFairness fairness;
  Examination examination;
};
PlannedFairness make_trial_fairness(const GroupSettings& groups, const std::vector<double>& beta,
                                    const ClickModel& user, const Dataset& train, std::int64_t cutoff,
                                    std::int64_t fold, const std::string& user_name);

}  // namespace olrank
