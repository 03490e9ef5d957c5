#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/ranker_settings.h"

namespace olrank {

/// What a trial asks of a ranker.
struct RankerLoad {
  std::int64_t features = 1;
  std::int64_t train_docs = 0;  // documents of the training part
  std::int64_t rounds = 0;
  std::int64_t cutoff = 10;  // documents shown in a round
};

/// What a trial of a ranker may need.
struct RankerPlan {
  /// The same ranker with its covariance kept another way.
  struct Form {
    std::string setting;     // that asks for it: covariance = "diagonal"
    std::int64_t bytes = 0;  // of the ranker with it, at most
  };

  std::int64_t parameters = 0;
  std::int64_t bytes = 0;   // of its state, at most
  std::vector<Form> forms;  // full by pairs, full by parameters, diagonal; empty where there is no choice
};

/// Worst case: every round brings all the pairs it can. Nothing is allocated. Throws InvalidArgument for
/// sizes that make no network.
RankerPlan plan_ranker(const RankerSettings& settings, const RankerLoad& load);

// The plans of the kinds, for their rows in models/ranker_kinds.cpp.
RankerPlan plan_pairrank(const RankerSettings& settings, const RankerLoad& load);
RankerPlan plan_p2linrank(const RankerSettings& settings, const RankerLoad& load);
RankerPlan plan_confident_network(const RankerSettings& settings, const RankerLoad& load);
RankerPlan plan_p2neurrank(const RankerSettings& settings, const RankerLoad& load);
RankerPlan plan_score_model(const RankerSettings& settings, const RankerLoad& load);  // all others

/// What to do where `plan.bytes` do not fit into `available`: the bytes of each form of the covariance and
/// which of them would fit. Half a sentence, "form = "dual" would take 3.0 GB, …".
std::string advice_on_memory(const RankerPlan& plan, std::int64_t available);

}  // namespace olrank
