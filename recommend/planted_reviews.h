#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/random/rng_stream.h"
#include "recommend/reviews.h"

namespace olrank {

// The parts that generators of reviews share.

inline double exponential_draw(RngStream& random) {
  return -std::log1p(-random.uniform());
}
inline double gumbel_draw(RngStream& random) {
  return -std::log(std::max(exponential_draw(random), 1e-300));
}

struct WrittenReview {
  std::int32_t item;
  float rating;
  std::vector<Mention> mentions;  // the phrases are numbered within their feature
};

/// How many of `reviews` each user writes: at least one, at most `most`, in proportion to an exponential
/// draw above `least`.
std::vector<std::int64_t> planted_review_counts(std::int64_t users, std::int64_t reviews, double least,
                                                std::int64_t most, PhiloxKey key);

std::string planted_feature_name(std::int64_t feature);

/// The reviews of all users, with names. Empties `written`.
Reviews named_reviews(std::span<std::vector<WrittenReview>> written);

}  // namespace olrank
