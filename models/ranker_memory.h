#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/posterior/posterior.h"
#include "models/skeleton/ranker_settings.h"

namespace olrank {

/// The sizes of a trial that a ranker's memory depends on.
struct RankerLoad {
  std::int64_t features = 1;
  std::int64_t train_docs = 0;  // documents of the training part
  std::int64_t rounds = 0;
  std::int64_t cutoff = 10;    // documents shown in a round
  std::int64_t most_docs = 0;  // of a query
  PosteriorHome home = PosteriorHome::kHost;
};

/// The memory that a ranker needs in a trial, at most.
struct RankerMemory {
  /// It describes the ranker with another form of its covariance.
  struct Form {
    std::string setting;     // the setting that selects it: covariance = "diagonal"
    std::int64_t bytes = 0;  // of the ranker in this form, at most
  };

  std::int64_t parameters = 0;
  std::int64_t bytes = 0;   // of its state, at most
  std::vector<Form> forms;  // full by pairs, full by parameters, diagonal; empty if there is no choice
};

/// The worst case, in which every round brings the most pairs; allocates nothing. Throws InvalidArgument
/// for sizes that no network can have.
RankerMemory memory_of_ranker(const RankerSettings& settings, const RankerLoad& load);

/// Returns what a sample of `replay` pairs takes, at most, from queries of up to `most_docs` documents.
double replay_bytes(const RankerSettings& settings, std::int64_t features, std::int64_t most_docs = 2);

// The kinds need these for their rows in models/ranker_kinds.cpp.
RankerMemory memory_of_linear(const RankerSettings& settings, const RankerLoad& load);
RankerMemory memory_of_confident_network(const RankerSettings& settings, const RankerLoad& load);
RankerMemory memory_of_p2neurrank(const RankerSettings& settings, const RankerLoad& load);
RankerMemory memory_of_toprank(const RankerSettings& settings, const RankerLoad& load);
RankerMemory memory_of_clickgp(const RankerSettings& settings, const RankerLoad& load);
RankerMemory memory_of_fairco(const RankerSettings& settings, const RankerLoad& load);
RankerMemory memory_of_external(const RankerSettings& settings, const RankerLoad& load);
RankerMemory memory_of_score_model(const RankerSettings& settings, const RankerLoad& load);  // all others

/// Says what to do if `plan.bytes` exceed `available`: the bytes of each form of the covariance and which
/// of them would fit, as a clause: form = "dual" needs 3.0 GB, ….
std::string advice_on_memory(const RankerMemory& plan, std::int64_t available);

}  // namespace olrank
