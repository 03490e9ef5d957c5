#pragma once

#include <cstdint>
#include <span>

#include "core/data/feature_matrix.h"

namespace olrank {

/// What a ranker may know of a query: its documents' features. Grades are not within reach from here; they
/// travel as QueryGrades, to users and metrics alone.
struct QueryDocs {
  std::int64_t query = 0;      // number within its part
  std::int64_t first_doc = 0;  // number of its document 0 within the part: names documents across rounds
  FeatureMatrix features;      // [V × d], normalised
  std::span<const std::int64_t> numbers = {};  // [V] those names, where they do not follow first_doc

  std::int64_t docs() const { return features.docs; }
  std::int64_t number(std::int32_t doc) const {
    return numbers.empty() ? first_doc + doc : numbers[static_cast<std::size_t>(doc)];
  }
};

}  // namespace olrank
