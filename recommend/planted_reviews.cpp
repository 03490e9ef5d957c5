#include "recommend/planted_reviews.h"

#include <fmt/format.h>

#include <numeric>

namespace olrank {

std::vector<std::int64_t> planted_review_counts(std::int64_t users, std::int64_t reviews, double least,
                                                std::int64_t most, PhiloxKey key) {
  std::vector<double> weights(users);
  for (std::int64_t user = 0; user < users; ++user) {
    RngStream random(key, static_cast<std::uint32_t>(user));
    weights[user] = least + exponential_draw(random);
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> counts(users);
  double owed = 0.0;
  for (std::int64_t user = 0; user < users; ++user) {
    owed += static_cast<double>(reviews) * weights[user] / sum;
    counts[user] = std::clamp<std::int64_t>(std::llround(owed), 1, most);
    owed -= static_cast<double>(counts[user]);
  }
  return counts;
}

std::string planted_feature_name(std::int64_t feature) {
  return fmt::format("feature{:03}", feature);
}

Reviews named_reviews(std::span<std::vector<WrittenReview>> written) {
  Reviews reviews;
  std::vector<Mention> said;
  for (std::size_t user = 0; user < written.size(); ++user) {
    if (written[user].empty()) continue;
    const std::int32_t by = reviews.names.users.intern(fmt::format("user{:05}", user));
    for (const WrittenReview& review : written[user]) {
      said.clear();
      for (const Mention& mention : review.mentions) {
        said.push_back(
            {reviews.names.features.intern(planted_feature_name(mention.feature)),
             reviews.names.phrases.intern(fmt::format("phrase{:03}-{}", mention.feature, mention.phrase)),
             mention.sentiment});
      }
      reviews.add(by, reviews.names.items.intern(fmt::format("item{:05}", review.item)), review.rating,
                  said);
    }
    written[user] = {};
  }
  return reviews;
}

}  // namespace olrank
