#include "recommend/review_split.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/random/rng_stream.h"

namespace olrank {
namespace {

/// share · count, rounded up with the probability of its fraction.
std::int64_t rounded_share(double share, std::int64_t count, RngStream& random) {
  const double wanted = share * static_cast<double>(count);
  const double whole = std::floor(wanted);
  return static_cast<std::int64_t>(whole) + (random.uniform() < wanted - whole ? 1 : 0);
}

}  // namespace

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
