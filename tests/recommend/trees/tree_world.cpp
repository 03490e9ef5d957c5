#include "tests/recommend/trees/tree_world.h"

#include "recommend/trees/pair_source.h"

namespace olrank {

TreeWorld::TreeWorld(std::int64_t seed) {
  ExecutionContext context;
  reviews = make_tree_reviews(context,
                              {.users = 200, .items = 120, .features = 20, .reviews = 2000, .seed = seed});
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

}  // namespace olrank
