#pragma once

#include <cstdint>

#include "recommend/reviews.h"

namespace olrank {

/// So much must remain of reviews. Jia, PhD thesis, UVA 2022, §4.1: recursive filtering by the support of
/// features, the features of a review and the reviews of an item; its thresholds are not printed.
struct ReviewSupport {
  std::int64_t feature_reviews = 0;  // reviews that mention a feature
  std::int64_t review_features = 0;  // different features that a review mentions
  std::int64_t item_reviews = 0;     // reviews of an item
  std::int64_t user_reviews = 0;     // reviews by a user
};

/// A filter removed so many.
struct FilterCounts {
  std::int64_t users = 0;
  std::int64_t items = 0;
  std::int64_t features = 0;
  std::int64_t reviews = 0;
  std::int64_t mentions = 0;
};

/// Removes mentions of features, reviews, items and users without enough support, again and again until all
/// that is left has it; names that nothing uses any more go too.
FilterCounts filter_reviews(Reviews& reviews, const ReviewSupport& support);

/// Keeps only mentions of the `count` features that most reviews mention, on ties those that came first.
void keep_frequent_features(Reviews& reviews, std::int64_t count);

}  // namespace olrank
