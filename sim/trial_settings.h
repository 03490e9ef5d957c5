#pragma once

#include <cstdint>

#include "core/data/dataset.h"
#include "core/metrics/empty_queries.h"

namespace olrank {

/// What a trial needs to know of its protocol.
struct TrialSettings {
  std::int64_t rounds = 0;
  std::int64_t cutoff = 10;       // k
  std::int64_t eval_every = 100;  // E
  double discount = 0.9995;       // γ
  EmptyQueries empty_queries = EmptyQueries::kZero;
};

/// One fold's data, normalised: queries are asked from `train`, the model is judged on `judged`.
struct TrialData {
  Dataset train;
  Dataset judged;
  int max_grade = 0;  // of all parts
};

}  // namespace olrank
