#pragma once

#include <cstdint>

#include "core/runtime/execution_context.h"
#include "core/settings/schema.h"
#include "recommend/reviews.h"

namespace olrank {

/// Reviews with planted factors, as MTER's model has them: non-negative vectors of users, items, features
/// and phrases, and three cores. Users review what they like, among what is popular; they rate by the
/// overall preference, mention features that matter to them, praise those they like, and use their phrases.
struct PlantedFactors {
  std::int64_t users = 1000;
  std::int64_t items = 1000;
  std::int64_t features = 50;
  std::int64_t phrases = 10;  // of each feature, half of them praise
  std::int64_t reviews = 8000;
  double mentions = 10.0;  // of a review, on average
  std::int64_t dimension = 8;
  double taste = 0.8;       // logits a standard deviation of preference adds when users choose
  double popularity = 0.5;  // exponent of the items' Zipf distribution
  double praise = 4.0;      // logits a standard deviation of preference adds to praise
  double noise = 0.5;       // standard deviation of a rating's error
  std::int64_t seed = 1;

  static const Schema& schema();
};

Reviews make_factor_reviews(ExecutionContext& context, const PlantedFactors& settings);

}  // namespace olrank
