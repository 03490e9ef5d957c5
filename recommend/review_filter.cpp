#include "recommend/review_filter.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

/// Reviews and mentions that are still there.
struct Kept {
  std::vector<bool> reviews;
  std::vector<bool> features;
};

/// Calls use(feature) once for each different feature that a review still mentions.
template <class Use>
void for_features(const Reviews& reviews, std::int64_t review, const Kept& kept,
                  std::vector<std::int64_t>& seen_in, Use use) {
  for (const Mention& mention : reviews.mentions_of(review)) {
    if (!kept.features[mention.feature] || seen_in[mention.feature] == review) continue;
    seen_in[mention.feature] = review;
    use(mention.feature);
  }
}

std::vector<std::int64_t> reviews_by_feature(const Reviews& reviews, const Kept& kept) {
  std::vector<std::int64_t> counts(reviews.names.features.size(), 0);
  std::vector<std::int64_t> seen_in(counts.size(), -1);
  for (std::int64_t review = 0; review < reviews.size(); ++review) {
    if (kept.reviews[review])
      for_features(reviews, review, kept, seen_in, [&](std::int32_t feature) { ++counts[feature]; });
  }
  return counts;
}

/// Drops features below their support; whether there were any.
bool drop_features(const Reviews& reviews, const ReviewSupport& support, Kept& kept) {
  const std::vector<std::int64_t> counts = reviews_by_feature(reviews, kept);
  bool dropped = false;
  for (std::size_t feature = 0; feature < counts.size(); ++feature) {
    if (!kept.features[feature] || counts[feature] >= support.feature_reviews) continue;
    kept.features[feature] = false;
    dropped = true;
  }
  return dropped;
}

/// Drops reviews with too few features, and those of items and users with too few reviews.
bool drop_reviews(const Reviews& reviews, const ReviewSupport& support, Kept& kept) {
  std::vector<std::int64_t> seen_in(reviews.names.features.size(), -1);
  std::vector<std::int64_t> by_item(reviews.names.items.size(), 0);
  std::vector<std::int64_t> by_user(reviews.names.users.size(), 0);
  bool dropped = false;
  for (std::int64_t review = 0; review < reviews.size(); ++review) {
    if (!kept.reviews[review]) continue;
    std::int64_t features = 0;
    for_features(reviews, review, kept, seen_in, [&](std::int32_t) { ++features; });
    if (features < support.review_features) {
      kept.reviews[review] = false;
      dropped = true;
      continue;
    }
    ++by_item[reviews.item[review]];
    ++by_user[reviews.user[review]];
  }
  for (std::int64_t review = 0; review < reviews.size(); ++review) {
    if (!kept.reviews[review]) continue;
    if (by_item[reviews.item[review]] >= support.item_reviews &&
        by_user[reviews.user[review]] >= support.user_reviews)
      continue;
    kept.reviews[review] = false;
    dropped = true;
  }
  return dropped;
}

Reviews kept_reviews(const Reviews& reviews, const Kept& kept) {
  Reviews left;
  left.highest_rating = reviews.highest_rating;
  std::vector<Mention> said;
  for (std::int64_t review = 0; review < reviews.size(); ++review) {
    if (!kept.reviews[review]) continue;
    said.clear();
    const std::int32_t user = left.names.users.intern(reviews.names.users[reviews.user[review]]);
    const std::int32_t item = left.names.items.intern(reviews.names.items[reviews.item[review]]);
    for (Mention mention : reviews.mentions_of(review)) {
      if (!kept.features[mention.feature]) continue;
      mention.feature = left.names.features.intern(reviews.names.features[mention.feature]);
      mention.phrase = left.names.phrases.intern(reviews.names.phrases[mention.phrase]);
      said.push_back(mention);
    }
    left.add(user, item, reviews.rating[review], said);
  }
  return left;
}

Kept everything(const Reviews& reviews) {
  return {std::vector<bool>(reviews.size(), true), std::vector<bool>(reviews.names.features.size(), true)};
}

/// share · count, rounded up with the probability of its fraction.
std::int64_t rounded_share(double share, std::int64_t count, RngStream& random) {
  const double wanted = share * static_cast<double>(count);
  const double whole = std::floor(wanted);
  return static_cast<std::int64_t>(whole) + (random.uniform() < wanted - whole ? 1 : 0);
}

}  // namespace

FilterCounts filter_reviews(Reviews& reviews, const ReviewSupport& support) {
  Kept kept = everything(reviews);
  for (;;) {
    const bool features = drop_features(reviews, support, kept);
    const bool some_reviews = drop_reviews(reviews, support, kept);
    if (!features && !some_reviews) break;
  }
  Reviews left = kept_reviews(reviews, kept);
  const FilterCounts removed = {
      reviews.names.users.size() - left.names.users.size(),
      reviews.names.items.size() - left.names.items.size(),
      reviews.names.features.size() - left.names.features.size(),
      reviews.size() - left.size(),
      std::ssize(reviews.mentions) - std::ssize(left.mentions),
  };
  reviews = std::move(left);
  return removed;
}

void keep_frequent_features(Reviews& reviews, std::int64_t count) {
  Kept kept = everything(reviews);
  const std::vector<std::int64_t> counts = reviews_by_feature(reviews, kept);
  std::vector<std::int32_t> order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return counts[a] > counts[b]; });
  for (std::size_t place = static_cast<std::size_t>(count); place < order.size(); ++place)
    kept.features[order[place]] = false;
  reviews = kept_reviews(reviews, kept);
}

ReviewSplit split_reviews(const Reviews& reviews, const SplitSettings& settings) {
  const std::int64_t users = reviews.names.users.size();
  std::vector<std::vector<std::int64_t>> by_user(users);
  for (std::int64_t review = 0; review < reviews.size(); ++review)
    by_user[reviews.user[review]].push_back(review);
  const PhiloxKey key = make_key({.seed = settings.seed, .purpose = Purpose::kSplit});
  ReviewSplit split;
  const double all =
      settings.by == SplitBy::kReviews ? 1.0 : settings.train_share + settings.validation_share;
  for (std::int64_t user = 0; user < users; ++user) {
    std::vector<std::int64_t>& own = by_user[user];
    RngStream random(key, static_cast<std::uint32_t>(user));
    const bool is_test_user = random.uniform() < settings.test_users;
    if (settings.by == SplitBy::kUsers && is_test_user) {
      split.test.insert(split.test.end(), own.begin(), own.end());
      continue;
    }
    random.shuffle(std::span<std::int64_t>(own));
    const auto count = std::ssize(own);
    const std::int64_t train = std::min(rounded_share(settings.train_share / all, count, random), count);
    const double left_share = 1.0 - settings.train_share / all;
    const double validation_of_left =
        left_share > 0.0 ? std::min(settings.validation_share / all / left_share, 1.0) : 0.0;
    const std::int64_t validation = rounded_share(validation_of_left, count - train, random);
    split.train.insert(split.train.end(), own.begin(), own.begin() + train);
    split.validation.insert(split.validation.end(), own.begin() + train, own.begin() + train + validation);
    split.test.insert(split.test.end(), own.begin() + train + validation, own.end());
  }
  for (auto* part : {&split.train, &split.validation, &split.test}) std::sort(part->begin(), part->end());
  return split;
}

}  // namespace olrank
