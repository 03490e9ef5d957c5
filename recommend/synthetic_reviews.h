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

/// Whether a source of data names generated reviews: "synth:…".
bool is_synthetic_reviews(std::string_view source);
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

}  // namespace olrank
