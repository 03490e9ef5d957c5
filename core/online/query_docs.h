#pragma once

#include <cstdint>
#include <span>

#include "core/data/feature_matrix.h"
#include "core/fair/exposure.h"
#include "core/online/query_identity.h"

namespace olrank {

/// The features of a query's documents: all that a ranker gets. Grades are a separate type, QueryGrades,
/// that only users and metrics get.
struct QueryDocs {
  std::int64_t query = 0;      // number within its part
  std::int64_t first_doc = 0;  // number within the part of document 0; identifies documents across rounds
  FeatureMatrix features;      // [V × d], normalised
  std::span<const std::int64_t> numbers = {};  // [V] those numbers, unless they follow first_doc
  const FairRound* fair = nullptr;             // the documents' groups, where exposure is measured
  const QueryIdentity* identity = nullptr;     // where names are not those numbers

  std::int64_t docs() const { return features.docs; }
  std::int64_t number(std::int32_t doc) const { return numbers.empty() ? first_doc + doc : numbers[doc]; }
};

}  // namespace olrank
