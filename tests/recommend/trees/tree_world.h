#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "recommend/recommender.h"
#include "recommend/synthetic_reviews.h"
#include "recommend/trees/factor_tree.h"
#include "recommend/trees/squared_sums.h"
#include "recommend/trees/tree_growth.h"

namespace olrank {

inline TrainingData training_on_all(const Reviews& reviews) {
  std::vector<std::int64_t> all(reviews.size());
  std::iota(all.begin(), all.end(), 0);
  return make_training_data(reviews, all);
}

/// A small set of reviews with item factors, and what a users' tree grows from.
struct TreeWorld {
  static constexpr int kDimension = 4;

  explicit TreeWorld(std::int64_t seed);
  TreeWorld(const TreeWorld&) = delete;
  TreeWorld& operator=(const TreeWorld&) = delete;

  Reviews reviews;
  TrainingData data;
  FactorRows items;
  Profiles profiles;
  Thresholds thresholds;
  SplitData split;
  std::vector<std::int32_t> rows;
};

/// A training of fact in a few seconds at most.
inline RecommendSettings small_fact(int passes) {
  RecommendSettings settings;
  settings.kind = RecommenderKind::kFact;
  settings.passes = passes;
  settings.factors.dimension = 5;
  settings.trees.user_depth = 3;
  settings.trees.item_depth = 3;
  settings.trees.descent_steps = 10;
  settings.trees.start_passes = 3;
  return settings;
}

}  // namespace olrank
