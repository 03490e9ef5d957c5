#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "recommend/recommender.h"
#include "recommend/synthetic_reviews.h"
#include "recommend/trees/factor_tree.h"
#include "recommend/trees/pair_source.h"
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

  explicit TreeWorld(std::int64_t seed) {
    ExecutionContext context;
    reviews = make_tree_reviews(
        context, {.users = 200, .items = 120, .features = 20, .reviews = 2000, .seed = seed});
    data = training_on_all(reviews);
    items = factorise_ratings(data.by_user, data.by_item.rows(), {.dimension = kDimension, .passes = 3});
    for (std::int64_t user = 0; user < data.by_user.rows(); ++user)
      rows.push_back(static_cast<std::int32_t>(user));
    profiles = make_profiles(data.by_user.rows(), reviews.names.features.size(),
                             count_mentions(data, reviews.user), ProfileKind::kUser);
    thresholds = equal_frequency_thresholds(profiles);
    split.profiles = &profiles;
    split.thresholds = &thresholds;
    split.reached = reached_thresholds(profiles, thresholds);
    split.dimension = kDimension;
    split.sums = squared_sums_of_rows(data.by_user, items);
  }
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

/// Returns what a user gave an item, if anything.
inline std::optional<float> rating_of(const RatingRows& by_user, std::int64_t user, std::int32_t item) {
  const auto rated = by_user.others_of(user);
  const auto place = std::ranges::find(rated, item);
  if (place == rated.end()) return std::nullopt;
  return by_user.ratings_of(user)[place - rated.begin()];
}

/// The slow formula: the squared error of a user's ratings if the user has this factor.
template <class Factor>
double squared_error_of(const TreeWorld& world, std::int64_t user, const Factor& factor) {
  double sum = 0.0;
  for (const std::int32_t item : world.data.by_user.others_of(user)) {
    double error = *rating_of(world.data.by_user, user, item);
    for (std::size_t k = 0; k < factor.size(); ++k)
      error -= static_cast<double>(factor[k]) * world.items.row(item)[k];
    sum += error * error;
  }
  return sum;
}

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
