#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/random/rng_stream.h"
#include "core/runtime/execution_context.h"
#include "core/settings/schema.h"
#include "recommend/reviews.h"

namespace olrank {

/// A key of a source "NAME?key=value&…", as it was written.
using SourceKeys = std::vector<std::pair<std::string, std::string>>;

/// A generator of reviews. Its schema describes the keys; equal keys give equal reviews on any number of
/// threads.
struct ReviewGenerator {
  std::string_view name;
  std::string_view about;  // one line
  const Schema& (*schema)() = nullptr;
  Reviews (*make)(ExecutionContext&, const SourceKeys&) = nullptr;
};
std::span<const ReviewGenerator> review_generators();

/// The reviews of "synth:NAME?key=value&…" or "NAME?key=value&…". Throws InvalidArgument for unknown names,
/// keys and values.
Reviews make_synthetic_reviews(ExecutionContext& context, std::string_view source);

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
