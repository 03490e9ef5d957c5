#include "recommend/reviews.h"

#include <algorithm>
#include <numeric>

namespace olrank {

void Reviews::add(std::int32_t by, std::int32_t about, float rated, std::span<const Mention> said) {
  user.push_back(by);
  item.push_back(about);
  rating.push_back(rated);
  mentions.insert(mentions.end(), said.begin(), said.end());
  mention_ends.push_back(std::ssize(mentions));
}

std::int64_t merge_repeated_reviews(Reviews& reviews) {
  std::vector<std::int64_t> order(reviews.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto same = [&](std::int64_t a, std::int64_t b) {
    return reviews.user[a] == reviews.user[b] && reviews.item[a] == reviews.item[b];
  };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return reviews.user[a] != reviews.user[b] ? reviews.user[a] < reviews.user[b]
                                              : reviews.item[a] < reviews.item[b];
  });
  std::vector<std::int64_t> next(reviews.size(), -1);  // the same pair's next review
  std::vector<bool> is_first(reviews.size(), true);
  std::int64_t repeated = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (!same(order[i - 1], order[i])) continue;
    next[order[i - 1]] = order[i];
    is_first[order[i]] = false;
    ++repeated;
  }
  if (repeated == 0) return 0;
  Reviews merged;
  merged.names = std::move(reviews.names);
  merged.highest_rating = reviews.highest_rating;
  std::vector<Mention> said;
  for (std::int64_t first = 0; first < reviews.size(); ++first) {
    if (!is_first[first]) continue;
    said.clear();
    double sum = 0.0;
    std::int64_t count = 0;
    for (std::int64_t review = first; review >= 0; review = next[review]) {
      const auto mentions = reviews.mentions_of(review);
      said.insert(said.end(), mentions.begin(), mentions.end());
      sum += reviews.rating[review];
      ++count;
    }
    merged.add(reviews.user[first], reviews.item[first],
               static_cast<float>(sum / static_cast<double>(count)), said);
  }
  reviews = std::move(merged);
  return repeated;
}

}  // namespace olrank
