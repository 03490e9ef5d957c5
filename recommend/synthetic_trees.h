#pragma once

#include <cstdint>
#include <string>

#include "core/runtime/execution_context.h"
#include "core/settings/schema.h"
#include "recommend/reviews.h"

namespace olrank {

/// Reviews with two planted trees: what users care about and what items are good at decide, question by
/// question, the factors whose product is the rating. Users review what they like, among what is popular;
/// they mention what they care about, and praise what the item is good at.
struct PlantedTrees {
  std::int64_t users = 1000;
  std::int64_t items = 1000;
  std::int64_t features = 100;  // Zipf-distributed
  std::int64_t phrases = 6;     // of each feature, half of them praise
  std::int64_t reviews = 15000;
  std::int64_t mentions = 8;  // of a review
  std::int64_t levels = 3;
  std::int64_t dimension = 8;
  double personal = 0.3;    // standard deviation of personal terms; a root's branches have 1
  double taste = 2.0;       // logits a standard deviation of preference adds when users choose
  double popularity = 0.5;  // exponent of the items' Zipf distribution
  double noise = 0.5;       // standard deviation of a rating's error
  std::int64_t seed = 1;

  static const Schema& schema();
};

Reviews make_tree_reviews(ExecutionContext& context, const PlantedTrees& settings);

/// The name of the feature that the root of the users' tree asks about.
std::string planted_root(const PlantedTrees& settings);

}  // namespace olrank
